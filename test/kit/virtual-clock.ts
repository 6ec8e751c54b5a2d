import type { Clock, Random } from '../../src/schemas/clock.ts'

/** A clock that only a test moves. */
export type VirtualClock = Clock & {
  /** Runs every timer that is due by then, in order of time, and their consequences. */
  advance(ms: number): Promise<void>
  /** Moves only the wall clock, as an administrator or NTP does. */
  setWallMs(ms: number): void
  readonly pendingTimers: number
  /** When the next timer is due, by the monotonic clock; Infinity: there is none. */
  nextTimerMs(): number
}

type Timer = { readonly atMs: number; readonly id: number; readonly callback: () => void }

/**
 * `settleTurns`: how often real I/O may complete between two timers. None is enough, and many times as fast, for what
 * only waits for promises and for this clock.
 */
export function createVirtualClock(startWallMs = 1_700_000_000_000, { settleTurns = 5 } = {}): VirtualClock {
  let nowMs = 0
  let wallOffsetMs = startWallMs
  let sequence = 0
  /** A heap by time; canceled timers stay in it until it is their turn. */
  const heap: Timer[] = []
  const pendingIds = new Set<number>()
  const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
  const settleByTurns = async (): Promise<void> => {
    for (let count = 0; count < settleTurns; count++) await turn()
  }
  // Node runs it when no promise has a callback left, and without a turn of its event loop
  const settleAtOnce = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve))
  const settle = settleTurns === 0 ? settleAtOnce : settleByTurns
  return {
    wallMs: () => wallOffsetMs + nowMs,
    steadyMs: () => startWallMs + nowMs,
    monotonicMs: () => nowMs,
    startTimer(delayMs, callback) {
      const id = ++sequence
      push(heap, { atMs: nowMs + Math.max(0, delayMs), id, callback })
      pendingIds.add(id)
      return () => void pendingIds.delete(id)
    },
    async advance(ms) {
      const untilMs = nowMs + ms
      if (settleTurns === 0) await turn() // what comes from outside still arrives, as a campaign's messages do
      await settle()
      while (heap[0] !== undefined && heap[0].atMs <= untilMs) {
        const { atMs, id, callback } = pop(heap)
        if (!pendingIds.delete(id)) continue
        nowMs = Math.max(nowMs, atMs)
        callback()
        await settle()
      }
      nowMs = untilMs
    },
    setWallMs(ms) {
      wallOffsetMs = ms - nowMs
    },
    nextTimerMs() {
      while (heap[0] !== undefined && !pendingIds.has(heap[0].id)) pop(heap)
      return heap[0]?.atMs ?? Infinity
    },
    get pendingTimers() {
      return pendingIds.size
    },
  }
}

/**
 * Lets time pass, timer by timer, until the check does not throw any more; throws what it throws after `withinMs`. For
 * what waits only for promises and for this clock: between two timers nothing changes.
 */
export async function eventually(clock: VirtualClock, check: () => void, withinMs = 60_000): Promise<void> {
  const untilMs = clock.monotonicMs() + withinMs
  await clock.advance(0)
  for (;;) {
    try {
      return check()
    } catch (error) {
      if (clock.monotonicMs() >= untilMs) throw error
    }
    await clock.advance(Math.min(clock.nextTimerMs(), untilMs) - clock.monotonicMs())
  }
}

const isBefore = (one: Timer, other: Timer): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.id < other.id)

function push(heap: Timer[], timer: Timer): void {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent] as Timer
    if (isBefore(above, timer)) break
    heap[at] = above
    at = parent
  }
  heap[at] = timer
}

/** The earliest timer of a heap that is not empty. */
function pop(heap: Timer[]): Timer {
  const first = heap[0] as Timer
  const last = heap.pop() as Timer
  if (heap.length === 0) return first
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    const right = left + 1
    if (left >= heap.length) break
    const child = right < heap.length && isBefore(heap[right] as Timer, heap[left] as Timer) ? right : left
    if (isBefore(last, heap[child] as Timer)) break
    heap[at] = heap[child] as Timer
    at = child
  }
  heap[at] = last
  return first
}

const hexDigits = '0123456789abcdef'

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
    hex(bytes) {
      let digits = ''
      while (digits.length < bytes * 2) digits += hexDigits.charAt(Math.floor(number() * 16))
      return digits
    },
  }
}
