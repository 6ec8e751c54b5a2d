import type { Clock, Random } from '../../src/schemas/clock.ts'

/** A clock that only a test moves. */
export type VirtualClock = Clock & {
  /** Runs every timer that is due by then, in order of time, and their consequences. */
  advance(ms: number): Promise<void>
  /** Moves only the wall clock, as an administrator or NTP does. */
  setWallMs(ms: number): void
  readonly pendingTimers: number
}

export function createVirtualClock(startWallMs = 1_700_000_000_000): VirtualClock {
  let nowMs = 0
  let wallOffsetMs = startWallMs
  let sequence = 0
  const timers = new Map<number, { readonly atMs: number; readonly callback: () => void }>()
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    wallMs: () => wallOffsetMs + nowMs,
    monotonicMs: () => nowMs,
    startTimer(delayMs, callback) {
      const id = ++sequence
      timers.set(id, { atMs: nowMs + Math.max(0, delayMs), callback })
      return () => void timers.delete(id)
    },
    async advance(ms) {
      const untilMs = nowMs + ms
      await settle()
      for (;;) {
        const [next] = [...timers]
          .filter(([, { atMs }]) => atMs <= untilMs)
          .sort(([a, one], [b, other]) => one.atMs - other.atMs || a - b)
        if (!next) break
        const [id, { atMs, callback }] = next
        timers.delete(id)
        nowMs = Math.max(nowMs, atMs)
        callback()
        await settle()
      }
      nowMs = untilMs
    },
    setWallMs(ms) {
      wallOffsetMs = ms - nowMs
    },
    get pendingTimers() {
      return timers.size
    },
  }
}

/** Random numbers from a seed (mulberry32). */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0
  const number = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    number,
    hex: (bytes) => Array.from({ length: bytes * 2 }, () => Math.floor(number() * 16).toString(16)).join(''),
  }
}
