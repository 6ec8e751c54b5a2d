export type Backoff = {
  readonly initialMs: number
  readonly maxMs: number
  /** Random share of the pause: 0.2 = 80 % to 100 % of it. No jitter if absent. */
  readonly jitter?: number
}

/**
 * Exponential backoff: the pause before the next attempt, in ms, doubled with each failure.
 * @param failures failures so far, at least 1
 * @param random at least 0, below 1; only used with jitter
 */
export function backoffMs(failures: number, { initialMs, maxMs, jitter = 0 }: Backoff, random = 0): number {
  const pauseMs = Math.min(maxMs, initialMs * 2 ** Math.min(Math.max(0, failures - 1), 30))
  return pauseMs * (1 - jitter * random)
}
