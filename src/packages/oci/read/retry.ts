import { backoffMs } from '../../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../../schemas/clock.ts'
import { ImageError } from '../errors.ts'
import { minBytesPerSecond } from './http.ts'

export type RetryOptions = {
  readonly clock: Clock
  readonly random: Random
  /** No wait ends later than this after the start, or after the failure of an attempt with enough progress. */
  readonly retryForMs: number
  readonly signal: AbortSignal
}

/** Called with the number of bytes that the next attempt need not request. */
export type OnReceived = (bytes: number) => void

const maxAttempts = 4 // after that, the caller waits with its own backoff, which shows a reason
const initialWaitMs = 250
const maxWaitMs = 30_000 // a pull does not wait longer, even if the registry asks for it
/**
 * Fewer bytes do not count as progress: otherwise a registry that breaks off at once would get thousands of requests.
 */
const minProgressBytes = 64 * 1024

/**
 * Retries failures that may end by themselves (no connection, 5xx, 429), with exponential backoff and jitter; a longer
 * Retry-After of the registry wins. Gives up with the last error after four attempts, or at once if the wait would be
 * too long or end too late.
 *
 * An attempt that received a part, at the minimum pace of a body, starts the count again, regardless of the answers of
 * other addresses: a large download may take any time, and its rest gets as many attempts as its start.
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
