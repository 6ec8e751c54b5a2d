import type { PackageRecord } from '../../schemas/journal.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import { isMetByBoot } from './pending.ts'
import type { Draft } from '../model/plan-builder.ts'
import { setEntry } from '../model/plan-builder.ts'

/** Names the attempt of an entry: what was answered for an earlier one is no answer. */
export function questionOf(draft: Draft, { name, version, work, attempt }: PackageRecord): string {
  const question = [draft.view.metadata.uid, name, version, work?.generation, attempt?.startedAtMs, attempt?.number].join('/')
  draft.needed.add(question)
  return question
}

/** What the package says about the interrupt that it may need: read once, when config has passed. */
export function answerOf(draft: Draft, entry: PackageRecord): StatusRead | 'asked' {
  const { name: skyhook } = draft.view.metadata
  const question = questionOf(draft, entry)
  const answer = draft.world.answers.get(question)
  if (answer) return answer
  draft.actions.push({ do: 'readStatus', key: `status/${skyhook}/${entry.name}`, skyhook, package: entry.name, question })
  return 'asked'
}

/** A requirement that somebody else's reboot, or a power cut, has met. True when the entry changed. */
export function settleByBoot(draft: Draft, key: string): boolean {
  const entry = draft.record.packages[key]
  if (!entry || draft.record.interrupt?.owners.includes(key) || !isMetByBoot(entry, draft.world.bootId)) return false
  const { owes, retryAtMs: _, failure: __, interruptRequired: ___, ...kept } = entry
  setEntry(draft, { ...kept, stage: 'interrupt', state: 'complete', restarts: 0 })
  const { lifecycle } = draft.record
  if (lifecycle) draft.record = { ...draft.record, lifecycle: { ...lifecycle, interruptedAtMs: draft.world.nowMs } }
  draft.events.push({ type: 'interrupted', skyhook: draft.view.metadata.name, interrupt: `${owes?.type}, met by a boot in between` })
  return true
}
