/**
 * A token bucket: `burst` at once, then `perSecond`. `take` books one token and returns how many ms the caller has to
 * wait for it; `tryTake` takes one only if it is there. The clock is monotonic ms and passed in.
 */
export type TokenBucket = {
  take(nowMs: number): number
  tryTake(nowMs: number): boolean
}

export function createTokenBucket(perSecond: number, burst: number): TokenBucket {
  let tokens = burst
  let lastRefillMs: number | undefined
  const refill = (nowMs: number): void => {
    if (lastRefillMs !== undefined) tokens = Math.min(burst, tokens + ((nowMs - lastRefillMs) / 1000) * perSecond)
    lastRefillMs = nowMs
  }
  return {
    take(nowMs) {
      refill(nowMs)
      tokens -= 1
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000
    },
    tryTake(nowMs) {
      refill(nowMs)
      if (tokens < 1) return false
      tokens -= 1
      return true
    },
  }
}
