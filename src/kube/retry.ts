import { backoffMs, type Backoff } from '../schemas/backoff.ts'
import { sleep, type Clock, type Random } from '../schemas/clock.ts'
import { isTransient, retryAfterMsOf } from './errors.ts'

/**
 * Pauses after failed requests: those of client-go's reflector, proven against restarts of large API servers. Half of
 * each is random, so that a fleet does not return in step.
 */
export const requestBackoff: Backoff = { initialMs: 800, maxMs: 30_000, jitter: 0.5 }

export type TransientRetryOptions = {
  readonly clock: Clock
  readonly random: Random
  /** The first one included. */
  readonly maxAttempts: number
  readonly signal?: AbortSignal
}

/**
 * Calls `task` until it succeeds, fails with an error that is not transient, or the attempts are used up; then throws
 * its last error. The server's Retry-After takes precedence over the backoff.
 */
export async function retryTransient<T>(task: () => Promise<T>, options: TransientRetryOptions): Promise<T> {
  const { clock, random, maxAttempts, signal } = options
  for (let failures = 1; ; failures++) {
    try {
      return await task()
    } catch (error) {
      if (signal?.aborted || failures >= maxAttempts || !isTransient(error)) throw error
      await sleep(clock, retryAfterMsOf(error) ?? backoffMs(failures, requestBackoff, random.number()), signal)
    }
  }
}
