import type { StepEnd } from '../../../schemas/step-end.ts'
import type { AttemptObservation } from '../../../stages/model/snapshot.ts'

/** The observed states of the open step attempts of the journal, by attempt id. */
export type Attempts = {
  current(): ReadonlyMap<string, AttemptObservation>
  /** Undefined if the attempt was not observed yet. */
  stateOf(id: string): AttemptObservation['state'] | undefined
  /** The attempt has no unit and no result. */
  absent(id: string): void
  running(id: string): void
  ended(id: string, end: StepEnd, logTail?: string): void
  /** The attempt must be stopped and must not start. */
  cancel(id: string): void
  isCanceled(id: string): boolean
  /** The time since which systemd has the request to stop it (steady ms). */
  stopRequested(id: string, atMs: number): void
  stopRequestedAtMs(id: string): number | undefined
  /** Its end is recorded: forgets it. */
  forget(id: string): void
}

/** `onRunning` is called with each observation of a running attempt. */
export function createAttempts(onRunning: (id: string) => void = () => undefined): Attempts {
  const attempts = new Map<string, AttemptObservation>()
  const canceled = new Set<string>()
  const stopRequests = new Map<string, number>()
  return {
    current: () => attempts,
    stateOf: (id) => attempts.get(id)?.state,
    absent: (id) => void attempts.set(id, { state: 'absent' }),
    running(id) {
      attempts.set(id, { state: 'running' })
      onRunning(id)
    },
    ended: (id, end, logTail) => void attempts.set(id, { state: 'ended', end, ...(logTail && { logTail }) }),
    cancel: (id) => void canceled.add(id),
    isCanceled: (id) => canceled.has(id),
    stopRequested: (id, atMs) => void stopRequests.set(id, atMs),
    stopRequestedAtMs: (id) => stopRequests.get(id),
    forget(id) {
      attempts.delete(id)
      canceled.delete(id)
      stopRequests.delete(id)
    },
  }
}
