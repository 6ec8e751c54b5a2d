import { randomBytes } from 'node:crypto'
import type { Clock, Random } from '../../schemas/clock.ts'

/** The machine's own clock and timers. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  // CLOCK_MONOTONIC, which all processes of a boot share; `performance.now` counts it from the start of this one
  steadyMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  monotonicMs: () => performance.now(),
  startTimer(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs)
    if (options?.isBackground) timer.unref()
    return () => clearTimeout(timer)
  },
}

/** The machine's own random numbers. */
export const systemRandom: Random = {
  number: () => Math.random(),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
}
