import type { PackageRecord, SkyhookRecord, StepAttempt } from '../../schemas/journal.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { Action } from '../model/plan.ts'
import { mayBeRunning } from '../model/host-facts.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { packageKey } from '../model/package-key.ts'

/**
 * Work that is not wanted any more (another version, a reset, an edit, a Skyhook that is gone) may still be under way
 * on the host. Its attempt is forgotten at once, its step is not: it is stopped, and nothing of its package starts
 * before it ended.
 * /
 */
export function cancelAll(record: SkyhookRecord): SkyhookRecord {
  const canceled = Object.values(record.packages).reduce(cancelPackage, record)
  return canceled.interrupt ? { ...canceled, interrupt: { ...canceled.interrupt, abandoned: true } } : canceled
}

/** The record without the attempt of one entry; a step of it that is not over joins those to be stopped. */
export function cancelPackage(record: SkyhookRecord, { attempt, ...entry }: PackageRecord): SkyhookRecord {
  const step = openStepOf(attempt)
  const packages = { ...record.packages, [packageKey(entry.name, entry.version)]: entry }
  return {
    ...record,
    packages,
    ...(step && { canceling: [...(record.canceling ?? []), { ...step, package: entry.name }] }),
  }
}

/** The same inside a decision; true when nothing of the package is left on the host. */
export function cancel(builder: PlanBuilder, entry: PackageRecord): boolean {
  builder.record = cancelPackage(builder.record, entry)
  stopCanceledSteps(builder)
  return !isCanceling(builder.record, entry.name)
}

/** Something of this package has still to be stopped. */
export const isCanceling = ({ canceling }: SkyhookRecord, name: string): boolean =>
  canceling?.some((step) => step.package === name) === true

export const openStepOf = (attempt: PackageRecord['attempt']): StepAttempt | undefined => {
  const last = attempt?.steps.at(-1)
  return last && !last.result ? last : undefined
}

/** Stops what is to be stopped and forgets what has ended. True once nothing of it is left. */
export function stopCanceledSteps(builder: {
  readonly snapshot: Snapshot
  record: SkyhookRecord
  readonly actions: Action[]
}): boolean {
  const { canceling, ...rest } = builder.record
  if (canceling === undefined) return true
  const remaining = canceling.filter((step) => mayBeRunning(builder.snapshot, step))
  for (const step of canceling) {
    const key = `stop/${step.id}`
    if (builder.actions.some((action) => action.key === key)) continue
    builder.actions.push(
      remaining.includes(step) ? { do: 'stopStep', key, step } : { do: 'forgetStep', key: `forget/${step.id}`, step },
    )
  }
  if (remaining.length === 0) builder.record = rest
  else if (remaining.length < canceling.length) builder.record = { ...builder.record, canceling: remaining }
  return remaining.length === 0
}
