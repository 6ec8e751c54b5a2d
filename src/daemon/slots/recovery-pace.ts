import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock } from '../../schemas/clock.ts'

/**
 * Limits how often a lost slot is created again. The garbage collector deletes a slot whose Node or Skyhook does not
 * exist (or no longer exists) in the API server, with a delay each time. This happens after a restore of etcd, until
 * the watches show it. An admission policy may also refuse each creation.
 */
export type RecoveryPace = {
  /** Until the next creation may be sent, in ms; 0 = now. */
  pauseMs(scope: string): number
  /** The reason for the pause; empty without a pause. */
  reason(scope: string): string
  /** The slot was created or refused. `reason` is the reason for a following pause. */
  answered(scope: string, reason: string): void
}

/** `count` is the number of consecutive answers. */
type Answer = { readonly count: number; readonly atMs: number; readonly reason: string }

const recoveryBackoff: Backoff = { initialMs: 1_000, maxMs: 30_000 }
/** A slot that existed for this time was not deleted because of its content. */
const keptMs = 2 * recoveryBackoff.maxMs

export function createRecoveryPace(clock: Pick<Clock, 'steadyMs'>): RecoveryPace {
  const answers = new Map<string, Answer>()
  const lastOf = (scope: string): Answer | undefined => {
    const last = answers.get(scope)
    return last && clock.steadyMs() - last.atMs < keptMs ? last : undefined
  }
  return {
    pauseMs(scope) {
      const last = lastOf(scope)
      return last ? Math.max(0, last.atMs + backoffMs(last.count, recoveryBackoff) - clock.steadyMs()) : 0
    },
    reason: (scope) => lastOf(scope)?.reason ?? '',
    answered(scope, reason) {
      answers.set(scope, { count: (lastOf(scope)?.count ?? 0) + 1, atMs: clock.steadyMs(), reason })
    },
  }
}
