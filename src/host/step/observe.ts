/** The state of an attempt of a step: running, ended and how, or absent. */
import type { StepEnd } from '../../schemas/step-end.ts'
import { endOfUnit, isLive, stepEndOf } from '../systemd/unit-state.ts'
import { stepFiles, type StepHost } from './files.ts'
import { readResultRecord, type StepRecord } from './result-record.ts'

/** What the caller knows about the attempt; a record that does not match it is ignored. */
export type StepIdentity = {
  readonly id: string
  readonly unit: string
  /** Boot of the host in which it was started. */
  readonly bootId?: string
}

export type StepObservation =
  /** Neither a unit nor a record: it never started, or the host died before its end was on disk. */
  | { readonly state: 'absent' }
  | { readonly state: 'running' }
  | {
      readonly state: 'ended'
      readonly result: StepEnd
      readonly source: 'file' | 'unit'
      /** The host was shutting down at the end: with any result, the step may have been stopped by the shutdown. */
      readonly isHostStopping?: true
    }

/** Looks once. Ended only when nothing of the step runs any more, its recorder included. */
export async function observeStepUnit(host: StepHost, step: StepIdentity): Promise<StepObservation> {
  const { resultsFolder } = stepFiles(host, step.id)
  const [state, earlyRecord] = await Promise.all([
    host.units.readState(step.unit),
    readResultRecord(host.root, resultsFolder, step.id),
  ])
  if (isLive(state)) {
    await host.units.ref(step.unit) // at once when it is ours already
    return { state: 'running' }
  }
  // it may have been written between the two answers
  const record = earlyRecord ?? (await readResultRecord(host.root, resultsFolder, step.id))
  if (record && isOfAttempt(record, step, state.invocationId)) {
    const end = { state: 'ended', result: stepEndOf(record), source: 'file' } as const
    return record.isHostStopping ? { ...end, isHostStopping: true } : end
  }
  if (state.loadState === 'not-found') return { state: 'absent' } // its other properties read as success
  return await observeWithoutRecord(host, step)
}

/**
 * The recorder could not write: the disk was full, its folder gone, or the fault that stopped the step stopped it too.
 */
async function observeWithoutRecord(host: StepHost, step: StepIdentity): Promise<StepObservation> {
  const unit = await host.units.readSnapshot(step.unit)
  if (isLive(unit)) return { state: 'running' }
  if (unit.loadState === 'not-found') return { state: 'absent' }
  const result: StepEnd = unit.invocationId
    ? stepEndOf(endOfUnit(unit))
    : { outcome: 'failed-to-start', detail: `the unit never ran (${unit.loadState})` }
  return { state: 'ended', result, source: 'unit' }
}

function isOfAttempt(record: StepRecord, { bootId }: StepIdentity, invocationOfUnit: string | undefined): boolean {
  if (invocationOfUnit !== undefined && record.invocationId !== invocationOfUnit) return false
  return bootId === undefined || record.bootId === bootId
}
