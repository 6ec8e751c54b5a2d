import { backoffMs } from '../../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../../schemas/clock.ts'
import { ImageError } from '../errors.ts'
import { minBytesPerSecond } from './time-limits.ts'

export type RetryOptions = {
  readonly clock: Clock
  readonly random: Random
  /** No wait ends later than this after the start, or after the failure of an attempt that brought enough. */
  readonly retryForMs: number
  readonly signal: AbortSignal
}

/** Hears of bytes that the next attempt need not ask for. */
export type OnReceived = (bytes: number) => void

const maxAttempts = 4 // beyond that the caller's own backoff is the better place to wait: it shows a reason
const initialWaitMs = 250
const maxWaitMs = 30_000 // a registry that asks for more is not waited for within a pull
/** Less than this is nothing: it would let a registry that breaks off at once be asked thousands of times. */
const minProgressBytes = 64 * 1024

/**
 * Repeats what may pass by itself (no connection, 5xx, 429), with doubling waits and jitter; the registry's Retry-After
 * wins if it is longer. Gives up with the last error after four attempts, or at once when the wait would be too long
 * or end too late.
 *
 * An attempt that brought a part, at the pace that a body must keep, is the first of a new row, whatever another
 * address answered: it takes as long as it takes, and the rest is worth as much patience as the beginning was.
 */
export async function retryTransient<T>(
  attempt: (onReceived: OnReceived) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const { clock, random, retryForMs, signal } = options
  let row = startRow(clock)
  for (;;) {
    try {
      return await attempt((bytes) => void (row.receivedBytes += bytes))
    } catch (error) {
      if (!(error instanceof ImageError)) throw error
      const hasProgress = broughtEnough(row, clock.monotonicMs())
      if (hasProgress) row = startRow(clock)
      if (++row.attempts === maxAttempts || !(isTransient(error) || hasProgress)) throw error
      const pauseMs = backoffMs(row.attempts, { initialMs: initialWaitMs, maxMs: maxWaitMs }) * (0.5 + random.number())
      const waitMs = Math.max(error.retryAfterMs ?? 0, pauseMs)
      if (waitMs > maxWaitMs || clock.monotonicMs() + waitMs >= row.sinceMs + retryForMs) throw error
      await sleep(clock, waitMs, signal)
    }
  }
}

/** Attempts that failed one after another. */
type Row = { readonly sinceMs: number; attempts: number; receivedBytes: number }

const startRow = (clock: Clock): Row => ({ sinceMs: clock.monotonicMs(), attempts: 0, receivedBytes: 0 })

const broughtEnough = ({ receivedBytes, sinceMs }: Row, nowMs: number): boolean =>
  receivedBytes >= Math.max(minProgressBytes, (minBytesPerSecond * (nowMs - sinceMs)) / 1000)

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

const isTransient = ({ code }: ImageError): boolean =>
  code === 'unreachable' || code === 'unavailable' || code === 'rate-limited'
