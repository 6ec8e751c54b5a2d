import type { SkyhookRecord } from '../../schemas/journal.ts'
import {
  type CanceledStep,
  isRunning,
  openStepOf,
  type PackageRecord,
  type StepAttempt,
} from '../../schemas/package-record.ts'
import { hasStarted, mayBeRunning, type Permission } from '../model/package-state.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { keyOf } from '../model/snapshot.ts'
import { dropAttempt, withFacts } from '../model/transitions.ts'

/**
 * Work that is no longer requested (another version, a reset, an edit, a Skyhook that is gone) may still be running on
 * the host. Its attempt is dropped at once, but its step is stopped, and nothing of its package starts before the step
 * has ended.
 */
export function cancelAll(record: SkyhookRecord): SkyhookRecord {
  const canceled = Object.values(record.packages).reduce(cancelPackage, record)
  return abandonInterrupt(canceled)
}

/** The outcome of the interrupt no longer matters. */
export const abandonInterrupt = (record: SkyhookRecord): SkyhookRecord =>
  record.interrupt ? { ...record, interrupt: { ...record.interrupt, abandoned: true } } : record

/** The record without the running attempt of one entry; an open step is added to the steps to stop. */
export function cancelPackage(record: SkyhookRecord, entry: PackageRecord): SkyhookRecord {
  if (!isRunning(entry)) return record
  const step = openStepOf(entry.progress)
  return {
    ...record,
    packages: { ...record.packages, [keyOf(entry)]: dropAttempt(entry) },
    canceling: step ? withCanceled(record, step, entry.name) : record.canceling,
  }
}

/**
 * The record with a step to stop that may be about to start. Its attempt is kept until its end is known: a step that
 * has succeeded by then is not repeated.
 */
export function stopUnstarted(record: SkyhookRecord, entry: PackageRecord, step: StepAttempt): SkyhookRecord {
  return { ...record, canceling: withCanceled(record, step, entry.name) }
}

function withCanceled({ canceling = [] }: SkyhookRecord, step: StepAttempt, name: string): readonly CanceledStep[] {
  return canceling.some(({ id }) => id === step.id) ? canceling : [...canceling, { ...step, package: name }]
}

/**
 * The same inside a decision; true when nothing of the package is left on the host. A running step is stopped only
 * where its successor may start. The result of an ended step is dropped.
 */
export function cancel(builder: PlanBuilder, entry: PackageRecord, { mayStart }: Permission): boolean {
  const step = openStepOf(entry.progress)
  if (!mayStart && step !== undefined && mayBeRunning(builder.snapshot, step)) return false
  builder.record = cancelPackage(builder.record, entry)
  stopCanceledSteps(builder)
  return !isCanceling(builder.record, entry.name)
}

/**
 * True when the package may continue with its successor. Until the successor is prepared far enough, nothing is stopped
 * or dropped, but an ended step does not prevent its preparation.
 */
export function makesWay(
  builder: PlanBuilder,
  entry: PackageRecord,
  permission: Permission,
  isSuccessorPrepared: boolean,
): boolean {
  if (isSuccessorPrepared) return cancel(builder, entry, permission)
  const step = openStepOf(entry.progress)
  return step === undefined || !mayBeRunning(builder.snapshot, step)
}

/** A step of this package still must be stopped. */
export const isCanceling = ({ canceling }: SkyhookRecord, name: string): boolean =>
  canceling?.some((step) => step.package === name) === true

const markTouched = (record: SkyhookRecord, name: string): SkyhookRecord => ({
  ...record,
  packages: Object.fromEntries(
    Object.entries(record.packages).map(([key, entry]) => [
      key,
      entry.name === name && entry.untouched ? withFacts(entry, { untouched: undefined }) : entry,
    ]),
  ),
})

/** Stops the steps to stop and drops those that have ended. True once none is left. */
export function stopCanceledSteps(builder: Pick<PlanBuilder, 'snapshot' | 'record' | 'actions'>): boolean {
  const { canceling } = builder.record
  if (canceling === undefined) return true
  const remaining = canceling.filter((step) => mayBeRunning(builder.snapshot, step))
  for (const step of canceling) {
    const isEnded = !remaining.includes(step)
    if (isEnded && keepsResult(builder, step)) continue
    if (isEnded) builder.record = withoutStep(builder, step)
    const key = `${isEnded ? 'forget' : 'stop'}/${step.id}`
    if (builder.actions.some((action) => action.key === key)) continue
    builder.actions.push({ do: isEnded ? 'forgetStep' : 'stopStep', key, step })
  }
  if (remaining.length < canceling.length)
    builder.record = { ...builder.record, canceling: remaining.length === 0 ? undefined : remaining }
  return remaining.length === 0
}

/** The attempt that has the step, unless it was dropped when the step was canceled. */
const entryOf = ({ packages }: SkyhookRecord, { id }: CanceledStep): PackageRecord | undefined =>
  Object.values(packages).find(({ progress }) => openStepOf(progress)?.id === id)

/**
 * Its attempt still exists, and the step passed, or went down with its host and its progress is unknown. Another exit
 * code may come from the stop.
 */
function keepsResult({ snapshot, record }: Pick<PlanBuilder, 'snapshot' | 'record'>, step: CanceledStep): boolean {
  if (entryOf(record, step) === undefined) return false
  const observed = snapshot.attempts.get(step.id)
  if (observed?.state !== 'ended') return true
  return observed.end.outcome === 'exited' && (step.returncodes ?? [0]).includes(observed.end.code)
}

function withoutStep(
  { snapshot, record }: Pick<PlanBuilder, 'snapshot' | 'record'>,
  step: CanceledStep,
): SkyhookRecord {
  const entry = entryOf(record, step)
  const rest =
    entry && isRunning(entry)
      ? { ...record, packages: { ...record.packages, [keyOf(entry)]: dropAttempt(entry) } }
      : record
  return hasStarted(snapshot, step) ? markTouched(rest, step.package) : rest
}
