/** A token bucket: `burst` at once, then `perSecond`. */
export type TokenBucket = {
  /** Takes one token and returns how many ms the caller has to wait for it. `nowMs` is monotonic. */
  take(nowMs: number): number
}

export function createTokenBucket(perSecond: number, burst: number): TokenBucket {
  let tokens = burst
  let lastRefillMs: number | undefined
  return {
    take(nowMs) {
      if (lastRefillMs !== undefined) tokens = Math.min(burst, tokens + ((nowMs - lastRefillMs) / 1000) * perSecond)
      lastRefillMs = nowMs
      tokens -= 1
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000
    },
  }
}
