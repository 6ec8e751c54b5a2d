import { backoffMs } from '../../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../../schemas/clock.ts'
import { ImageError } from '../errors.ts'

export type RetryOptions = {
  readonly clock: Clock
  readonly random: Random
  /** By the monotonic clock: no wait ends later. */
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

const maxAttempts = 4 // beyond that the caller's own backoff is the better place to wait: it shows a reason
const initialWaitMs = 250
const maxWaitMs = 30_000 // a registry that asks for more is not waited for within a pull

/**
 * Repeats what may pass by itself (no connection, 5xx, 429), with doubling waits and jitter; the registry's Retry-After
 * wins if it is longer. Gives up with the last error after four attempts, or at once when the wait would be too long
 * or end after the deadline.
 */
export async function retryTransient<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, random, deadlineMs, signal } = options
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isTransient(error) || number === maxAttempts) throw error
      const pauseMs = backoffMs(number, { initialMs: initialWaitMs, maxMs: maxWaitMs }) * (0.5 + random.number())
      const waitMs = Math.max(error.retryAfterMs ?? 0, pauseMs)
      if (waitMs > maxWaitMs || clock.monotonicMs() + waitMs >= deadlineMs) throw error
      await sleep(clock, waitMs, signal)
    }
  }
}

/**
 * Retry-After in milliseconds: seconds or an HTTP date, as RFC 9110 §10.2.3 allows. A date counts from the server's own
 * `Date`: clocks of two machines are not compared.
 */
export function parseRetryAfter(headers: {
  readonly 'retry-after'?: string | undefined
  readonly date?: string | undefined
}): number | undefined {
  const { 'retry-after': header, date } = headers
  if (header === undefined) return undefined
  if (/^\d+$/.test(header)) return Number(header) * 1000
  const waitMs = Date.parse(header) - Date.parse(date ?? '')
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}

function isTransient(error: unknown): error is ImageError {
  return (
    error instanceof ImageError &&
    (error.code === 'unreachable' || error.code === 'unavailable' || error.code === 'rate-limited')
  )
}
