/** Interrupts that a package owes follow the spec until they are made. */
import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { canonicalJson } from '../../schemas/canonical-json.ts'
import { pendingForInstall, pendingForSpec } from './pending.ts'
import { type PlanBuilder, setEntry, requeueAt } from '../model/plan-builder.ts'
import { isConditional, mergeInterrupts } from './merge.ts'
import type { PackageState } from '../model/package-state.ts'

/** Until it is complete for the first time a package owes what the spec says now. True when the entry changed. */
export function refreshPendingForInstall(
  builder: PlanBuilder,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
): boolean {
  if (
    !spec ||
    entry.version !== spec.version ||
    entry.finishedInputs ||
    !entry.work ||
    !stagesOfInstall.has(entry.stage)
  )
    return false
  const renewed = pendingForInstall(entry, spec)
  if (canonicalJson(renewed) === canonicalJson(entry.pendingInterrupt)) return false
  const { pendingInterrupt: _, ...others } = entry
  setEntry(builder, { ...others, ...(renewed && { pendingInterrupt: renewed }) })
  return true
}

const stagesOfInstall: ReadonlySet<StageName> = new Set(['apply', 'upgrade', 'config'])

/**
 * Two debts are taken from the spec of now: of an interrupt that failed, whose correction must not wait for the next
 * version, and of one that a person asked for again by setting the stage. True when the entry changed.
 */
export function refreshPending(builder: PlanBuilder, key: string, spec: PackageSpec | undefined): boolean {
  const entry = builder.record.packages[key]
  if (!entry || !spec || builder.record.interrupt?.owners.includes(key) || entry.state === 'complete') return false
  if (entry.pendingInterrupt !== undefined && entry.state !== 'erroring') return false
  const renewed = pendingForSpec(entry, spec)
  if (
    entry.pendingInterrupt !== undefined &&
    canonicalJson(renewed) === canonicalJson(mergeInterrupts([entry.pendingInterrupt]))
  )
    return false
  const { pendingInterrupt: _, retryAtMs: __, failure: ___, ...retained } = entry
  const answers = entry.pendingInterrupt === undefined && renewed && isConditional(renewed) // it is the person who says that it is required
  setEntry(builder, {
    ...retained,
    stage: 'config',
    state: 'complete',
    restarts: 0,
    ...(renewed && { pendingInterrupt: renewed }),
    ...(answers && { interruptRequirement: { required: true, bootId: builder.snapshot.bootId } }),
  })
  return true
}

/** Owed and not yet under way, or failed and waiting for its next try. */
export function interruptState(builder: PlanBuilder, key: string): PackageState {
  const entry = builder.record.packages[key]
  if (entry?.state !== 'erroring' || (entry.retryAtMs ?? 0) <= builder.snapshot.nowMs)
    return { state: 'interrupt', key }
  requeueAt(builder, entry.retryAtMs ?? 0)
  const reason = entry.failure?.reason === 'RebootRefused' ? 'RebootRefused' : 'StepFailed'
  return {
    state: 'blocked',
    atPreparation: false,
    reason,
    message: `package ${entry.name} ${entry.version}: ${entry.failure?.message ?? 'failed'}`,
  }
}
