import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock } from '../../schemas/clock.ts'

/**
 * How often a lost slot is created again. The garbage collector deletes one whose Node or Skyhook the API server does
 * not have (any more), and takes a moment for it each time: after a restore of etcd, until the watches show it. An
 * admission policy may refuse each of them.
 */
export type RecoveryPace = {
  /** Until the next creation may be sent, in ms; 0 = now. */
  pauseMs(scope: string): number
  /** What the pause is for; empty without one. */
  reason(scope: string): string
  /** It was created, or refused; `reason`: what a pause that follows is for. */
  answered(scope: string, reason: string): void
}

/** `count`: of those in a row. */
type Answer = { readonly count: number; readonly atMs: number; readonly reason: string }

const recoveryBackoff: Backoff = { initialMs: 1_000, maxMs: 30_000 }
/** A slot that was kept for so long was not deleted for what it was created with. */
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
