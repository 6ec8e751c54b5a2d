/** Interrupts that a package owes follow the spec until they are made. */
import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { canonicalJson } from '../../schemas/canonical-json.ts'
import { debtOfInstall, debtOfNow } from './pending.ts'
import type { Draft } from '../model/plan-builder.ts'
import { setEntry, wakeAt } from '../model/plan-builder.ts'
import { isConditional, mergeInterrupts } from './merge.ts'
import type { PackageState } from '../model/package-state.ts'

/** Until it is complete for the first time a package owes what the spec says now. True when the entry changed. */
export function renewDebtOfInstall(draft: Draft, entry: PackageRecord, spec: PackageSpec | undefined): boolean {
  if (!spec || entry.version !== spec.version || entry.finished || !entry.work || !stagesOfInstall.has(entry.stage)) return false
  const wanted = debtOfInstall(entry, spec)
  if (canonicalJson(wanted) === canonicalJson(entry.owes)) return false
  const { owes: _, ...others } = entry
  setEntry(draft, { ...others, ...(wanted && { owes: wanted }) })
  return true
}

const stagesOfInstall: ReadonlySet<StageName> = new Set(['apply', 'upgrade', 'config'])

/**
 * Two debts are taken from the spec of now: of an interrupt that failed, whose correction must not wait for the next
 * version, and of one that a person asked for again by setting the stage. True when the entry changed.
 */
export function renewDebt(draft: Draft, key: string, spec: PackageSpec | undefined): boolean {
  const entry = draft.record.packages[key]
  if (!entry || !spec || draft.record.interrupt?.owners.includes(key) || entry.state === 'complete') return false
  if (entry.owes !== undefined && entry.state !== 'erroring') return false
  const wanted = debtOfNow(entry, spec)
  if (entry.owes !== undefined && canonicalJson(wanted) === canonicalJson(mergeInterrupts([entry.owes]))) return false
  const { owes: _, retryAtMs: __, failure: ___, ...kept } = entry
  const answers = entry.owes === undefined && wanted && isConditional(wanted) // it is the person who says that it is required
  setEntry(draft, {
    ...kept,
    stage: 'config',
    state: 'complete',
    restarts: 0,
    ...(wanted && { owes: wanted }),
    ...(answers && { interruptRequired: { required: true, bootId: draft.world.bootId } }),
  })
  return true
}

/** Owed and not yet under way, or failed and waiting for its next try. */
export function interruptState(draft: Draft, key: string): PackageState {
  const entry = draft.record.packages[key]
  if (entry?.state !== 'erroring' || (entry.retryAtMs ?? 0) <= draft.world.nowMs) return { state: 'interrupt', key }
  wakeAt(draft, entry.retryAtMs ?? 0)
  const reason = entry.failure?.reason === 'RebootRefused' ? 'RebootRefused' : 'StepFailed'
  return {
    state: 'blocked',
    atPreparation: false,
    reason,
    message: `package ${entry.name} ${entry.version}: ${entry.failure?.message ?? 'failed'}`,
  }
}
