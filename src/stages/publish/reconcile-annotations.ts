import type { Companion } from '../../schemas/annotations.ts'
import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import type { PackageRecord } from '../../schemas/package-record.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { stagesWithSteps } from '../../schemas/package-config.ts'
import type { StageName } from '../../schemas/skyhook.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import { type PublishedEntries, type PublishedEntry, parseState, publishedOf } from '../../schemas/published.ts'
import { newSkyhookRecord, withoutFlags } from '../model/plan-builder.ts'
import { editStage } from '../model/transitions.ts'
import { abandonInterrupt, cancelAll, cancelPackage } from '../package/cancel.ts'
import type { StageEvent } from '../model/plan.ts'

export type Reconciled = { readonly journal: Journal; readonly events: readonly StageEvent[] }

/**
 * Journal against annotation, the same at start and at run time. The annotation is the published copy and a control:
 * the companion's hash distinguishes our writes from a person's, and shows what the person edited: what was published
 * last, or what the Node had before that. If the Node itself is another one (registered again, restored from a
 * backup), the journal wins.
 */
export function reconcileAnnotations(journal: Journal, node: KubernetesNode): Reconciled {
  const events: StageEvent[] = []
  const skyhooks: Record<string, SkyhookRecord> = {}
  let hasChanged = false
  for (const [name, record] of Object.entries(journal.skyhooks)) {
    const next = record.orphaned
      ? reconcileOrphan(name, record, node)
      : reconcileOne(name, record, node, journal.nodeUid, events)
    if (next !== record) hasChanged = true
    if (next) skyhooks[name] = next
  }
  return { journal: hasChanged ? { ...journal, skyhooks } : journal, events }
}

function reconcileOne(
  name: string,
  record: SkyhookRecord,
  node: KubernetesNode,
  journalNodeUid: string,
  events: StageEvent[],
): SkyhookRecord | undefined {
  if (!record.published) return record // never shown: nothing a person could have changed
  const { state, entries, companion, origin } = publishedOf(node, name)
  const isReregistered = node.metadata.uid !== journalNodeUid
  if (isReregistered || companion === undefined) {
    if (isReregistered)
      events.push({
        type: 'republished',
        skyhook: name,
        message: 'the Node was registered again; its state was restored',
      })
    return record // the journal wins; publication shows the difference and writes it
  }
  if (origin !== 'edited') return record
  const edit = editOf(companion, state)
  if (edit === record.edit) return record // our answer to it is not on the Node yet
  const { published } = record
  const isPublished = companion.sha256 === sha256Hex(published.state)
  const seen = isPublished ? published.state : published.before
  if (state === seen || state === published.state) return record // the companion alone is not as we wrote it
  if (state === undefined) {
    events.push({ type: 'reset', skyhook: name })
    return { ...startOver(record), edit }
  }
  return { ...applyEdit(name, record, { seen: parseState(seen ?? '{}'), edited: entries }, events), edit }
}

/**
 * A reset of a deleted Skyhook, before the agent has removed it from the Node, applies to the next Skyhook of that
 * name.
 */
function reconcileOrphan(name: string, record: SkyhookRecord, node: KubernetesNode): SkyhookRecord {
  const { companion, state } = publishedOf(node, name)
  const isReset = companion !== undefined && state === undefined
  return isReset && Object.keys(record.packages).length > 0 ? { ...startOver(record), orphaned: true } : record
}

/** A text from before our first publication on this installation of the host is not an edit of ours. */
export function existingEdit(node: KubernetesNode, name: string): { readonly edit?: string } {
  const { companion, state } = publishedOf(node, name)
  return companion ? { edit: editOf(companion, state) } : {}
}

/** Identifies an edit: the same text under a later revision is a new one. */
export const editOf = ({ rev }: Pick<Companion, 'rev'>, text: string | undefined): string =>
  `${rev}/${text === undefined ? 'removed' : sha256Hex(text)}`

/**
 * Drops everything that was done; the Skyhook starts again as on a new node. The slot, if any, is found again by its
 * Lease.
 */
function startOver(record: SkyhookRecord): SkyhookRecord {
  const { canceling, interrupt } = cancelAll(record)
  return { ...newSkyhookRecord(record.uid), rev: record.rev, canceling, interrupt }
}

const isStageName = (value: unknown): value is StageName =>
  value === 'interrupt' || stagesWithSteps.some((stage) => stage === value)

/**
 * A person's edit, entry by entry against what the Node showed before it: gone restarts the package, another stage
 * restarts there.
 */
function applyEdit(
  skyhook: string,
  record: SkyhookRecord,
  { seen, edited }: Readonly<Record<'seen' | 'edited', PublishedEntries | undefined>>,
  events: StageEvent[],
): SkyhookRecord {
  const ignore = (message: string): void => void events.push({ type: 'editIgnored', skyhook, message })
  const republished = { ...record, published: undefined } // the next publication is a new revision
  if (!edited) {
    ignore('the annotation is not a JSON object; it was restored')
    return republished
  }
  const packages: Record<string, PackageRecord> = {}
  let next: SkyhookRecord = republished
  for (const [key, entry] of Object.entries(record.packages)) {
    const edit = entryEdit(seen?.get(key), edited.get(key))
    if (edit.edit === 'unknown-stage')
      ignore(`${key}: unknown stage ${JSON.stringify(edit.stage ?? null)}; the entry was restored`)
    if (edit.edit === 'none' || edit.edit === 'unknown-stage') packages[key] = entry
    else {
      if (edit.edit === 'stage') packages[key] = editStage(entry, edit.stage, edit.isComplete)
      next = { ...cancelOwner(next, key, entry), flags: withoutFlags(next.flags, entry.name) }
      events.push({ type: 'edited', skyhook, package: entry.name })
    }
  }
  for (const key of edited.keys())
    if (!Object.hasOwn(record.packages, key))
      ignore(`${key}: this Skyhook has not installed such a package; the entry was removed`)
  return { ...next, packages }
}

type EntryEdit =
  | { readonly edit: 'none' | 'removed' }
  | { readonly edit: 'stage'; readonly stage: StageName; readonly isComplete: boolean }
  | { readonly edit: 'unknown-stage'; readonly stage: string | undefined }

function entryEdit(seen: PublishedEntry | undefined, edited: PublishedEntry | undefined): EntryEdit {
  if (!seen) return { edit: 'none' }
  if (!edited) return { edit: 'removed' }
  const { stage, state } = edited
  if (stage === seen.stage && state === seen.state) return { edit: 'none' }
  return isStageName(stage)
    ? { edit: 'stage', stage, isComplete: state === 'complete' }
    : { edit: 'unknown-stage', stage }
}

/** Running work of an entry that a person restarts ends first: the agent stops its step and waits for its interrupt. */
function cancelOwner(record: SkyhookRecord, key: string, entry: PackageRecord): SkyhookRecord {
  const canceled = cancelPackage(record, entry)
  const { interrupt } = canceled
  return interrupt?.owners.includes(key) ? abandonInterrupt(canceled) : canceled
}
