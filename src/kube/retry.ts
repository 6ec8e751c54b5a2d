import { setTimeout as setTimeoutPromise } from 'node:timers/promises'
import { isTransient, retryAfterMsOf } from './errors.ts'

export type Backoff = (attempt: number) => number

/**
 * Waiting time before try number `attempt` (from 0): 0.8 s doubled each time up to 30 s, of which a random half is left
 * out so that a fleet does not return in step. The figures are those of client-go's reflector, proven against restarts
 * of large API servers.
 */
export function exponentialBackoff(random: () => number = Math.random, initialMs = 800, maxMs = 30_000): Backoff {
  return (attempt) => Math.min(maxMs, initialMs * 2 ** Math.min(attempt, 30)) * (0.5 + random() / 2)
}

export type TransientRetryOptions = {
  readonly signal?: AbortSignal
  /** Tries in all, the first included. */
  readonly maxAttempts?: number
  readonly backoff?: Backoff
  /**
   * Which failures are worth another try; the default is right for reads and for writes that may be repeated safely.
   */
  readonly shouldRetry?: (error: unknown) => boolean
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
}

/**
 * Calls `task` until it succeeds, fails for good, or the tries are used up; the server's Retry-After wins over the
 * backoff.
 */
export async function retryTransient<T>(task: () => Promise<T>, options: TransientRetryOptions = {}): Promise<T> {
  const {
    signal,
    maxAttempts = 4,
    backoff = exponentialBackoff(),
    shouldRetry = isTransient,
    sleep = abortableSleep,
  } = options
  for (let attempt = 0; ; attempt++) {
    try {
      return await task()
    } catch (error) {
      if (signal?.aborted || attempt + 1 >= maxAttempts || !shouldRetry(error)) throw error
      await sleep(retryAfterMsOf(error) ?? backoff(attempt), signal)
    }
  }
}

/** Sleeps; throws the signal's reason when aborted. */
export async function abortableSleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await setTimeoutPromise(ms, undefined, signal === undefined ? {} : { signal })
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  }
}
