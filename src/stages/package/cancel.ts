import {
  type CanceledStep,
  isRunning,
  openStepOf,
  type PackageRecord,
  type SkyhookRecord,
  type StepAttempt,
} from '../../schemas/journal.ts'
import { hasStarted, mayBeRunning } from '../model/host-facts.ts'
import { keyOf } from '../model/package-key.ts'
import type { Permission } from '../model/package-state.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { dropAttempt, withFacts } from '../model/transitions.ts'

/**
 * Work that is not wanted any more (another version, a reset, an edit, a Skyhook that is gone) may still be under way
 * on the host. Its attempt is forgotten at once, its step is not: it is stopped, and nothing of its package starts
 * before it ended.
 */
export function cancelAll(record: SkyhookRecord): SkyhookRecord {
  const canceled = Object.values(record.packages).reduce(cancelPackage, record)
  return abandonInterrupt(canceled)
}

/** Nobody wants the outcome of the interrupt any more. */
export const abandonInterrupt = (record: SkyhookRecord): SkyhookRecord =>
  record.interrupt ? { ...record, interrupt: { ...record.interrupt, abandoned: true } } : record

/** The record without the running attempt of one entry; a step that has not ended joins those to be stopped. */
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
 * The record with a step to be stopped that may be about to start. Its attempt is kept until its end is known: one that
 * has ended well by then is not repeated.
 */
export function stopUnstarted(record: SkyhookRecord, entry: PackageRecord, step: StepAttempt): SkyhookRecord {
  return { ...record, canceling: withCanceled(record, step, entry.name) }
}

function withCanceled({ canceling = [] }: SkyhookRecord, step: StepAttempt, name: string): readonly CanceledStep[] {
  return canceling.some(({ id }) => id === step.id) ? canceling : [...canceling, { ...step, package: name }]
}

/**
 * The same inside a decision; true when nothing of the package is left on the host. A step that runs is stopped only
 * where its successor may start; of one that has ended only the result is dropped.
 */
export function cancel(builder: PlanBuilder, entry: PackageRecord, { mayStart }: Permission): boolean {
  const step = openStepOf(entry.progress)
  if (!mayStart && step !== undefined && mayBeRunning(builder.snapshot, step)) return false
  builder.record = cancelPackage(builder.record, entry)
  stopCanceledSteps(builder)
  return !isCanceling(builder.record, entry.name)
}

/**
 * True when the package may go on to its successor. Until that is prepared as far as it has to be, nothing is stopped
 * or dropped, but a step that has ended does not keep the node from preparing it.
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

/** Something of this package has still to be stopped. */
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

/** Stops what is to be stopped and forgets what has ended. True once nothing of it is left. */
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

/** The attempt that has the step, unless it was forgotten when the step was canceled. */
const entryOf = ({ packages }: SkyhookRecord, { id }: CanceledStep): PackageRecord | undefined =>
  Object.values(packages).find(({ progress }) => openStepOf(progress)?.id === id)

/**
 * Its attempt is there still, and it passed, or went down with its host: nobody knows how far it came. One that ended
 * with another code may have done so because it was told to stop.
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
