import { randomBytes } from 'node:crypto'
import type { Clock, Random } from '../../schemas/clock.ts'

const startWallMs = Date.now() - performance.now()

/** The machine's own clock and timers. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  steadyMs: () => Math.floor(startWallMs + performance.now()),
  monotonicMs: () => performance.now(),
  startTimer(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs)
    if (options?.isBackground) timer.unref()
    return () => clearTimeout(timer)
  },
}

/** The machine's own source of chance. */
export const systemRandom: Random = {
  number: () => Math.random(),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
}
