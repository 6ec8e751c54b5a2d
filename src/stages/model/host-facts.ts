import type { InterruptRun, StepAttempt } from '../../schemas/journal.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * Its end is not known, and the host has not booted since. A step that the host does not show yet may be about to
 * start.
 */
export function mayBeRunning({ attempts, bootId }: Snapshot, step: StepAttempt): boolean {
  const observed = attempts.get(step.id)?.state ?? 'absent'
  return observed === 'running' || (observed === 'absent' && step.bootId === bootId)
}

/** It ran on the host, or may have run before the host went down. */
export function hasStarted({ attempts, bootId }: Snapshot, step: StepAttempt): boolean {
  const observed = attempts.get(step.id) ?? { state: 'absent' }
  if (observed.state === 'ended') return observed.end.outcome !== 'failed-to-start'
  return observed.state === 'running' || step.bootId !== bootId
}

/** True while an interrupt may be running on the host. */
export function isInterrupting({ interrupts, bootId }: Snapshot, run: InterruptRun | undefined): boolean {
  if (run === undefined || run.bootId !== bootId) return false
  const observed = interrupts.get(run.id)?.state
  return observed === undefined || observed === 'running' || observed === 'unknown'
}
