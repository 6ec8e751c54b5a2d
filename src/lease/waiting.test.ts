import { describe, expect, test } from 'vitest'
import {
  firstDelayMs,
  isAmongFirst,
  handOverDelayMs,
  hashFraction,
  isNextInLine,
  lineLength,
  lookDelayMs,
  lostDelayMs,
  otherSlotsShare,
  placeOf,
  rankOf,
  sleepMs,
} from './waiting.ts'

const uids = Array.from({ length: 1_000 }, (_, index) => `node-${index}`)
/** A node of a thousand with about this place. */
const uidAt = (fraction: number): string =>
  uids.reduce((best, uid) =>
    Math.abs(hashFraction(uid) - fraction) < Math.abs(hashFraction(best) - fraction) ? uid : best,
  )

describe('ranks', () => {
  test('the places of a thousand nodes are spread evenly', () => {
    const places = uids.map((uid) => placeOf(uid, { matched: 10, waiters: 10 }))
    for (let place = 0; place < 10; place++) {
      const count = places.filter((one) => one === place).length
      expect(count).toBeGreaterThan(70)
      expect(count).toBeLessThan(130)
    }
  })

  test('a node moves up by each node that stops waiting, and then stays first', () => {
    const uid = uidAt(0.5)
    expect([1_000, 900, 600, 100].map((waiters) => Math.round(rankOf(uid, { matched: 1_000, waiters }) / 10))).toEqual([
      50, 40, 10, 0,
    ])
  })

  test('more waiters than selected nodes change nothing', () => {
    const uid = uidAt(0.5)
    expect(rankOf(uid, { matched: 100, waiters: 120 })).toBe(rankOf(uid, { matched: 100, waiters: 100 }))
  })

  test('every node of a small cluster is next in line', () => {
    for (const uid of uids.slice(0, 15)) expect(isNextInLine(uid, 1, { matched: 15, waiters: 15 })).toBe(true)
  })

  test('some of 290 nodes that go one by one always watch, whatever their hashes are', () => {
    const queueOf = (waiters: number) => ({ matched: 290, waiters })
    for (let fleet = 0; fleet < 8; fleet++) {
      const waiting = new Set(Array.from({ length: 290 }, (_, index) => `fleet-${fleet}-${index}`))
      for (let waiters = 290; waiters > 0; waiters--) {
        const line = [...waiting].filter((uid) => isNextInLine(uid, 1, queueOf(waiters)))
        expect(line.length).toBeGreaterThan(0)
        expect(line.length).toBeLessThan(90)
        waiting.delete(line[(fleet * 7 + waiters) % line.length] as string)
      }
    }
  })
})

describe('delays', () => {
  const queue = { matched: 1_000, waiters: 900 }

  test('the first of a round ask before the next round', () => {
    const delays = [0.1, 0.25, 0.35].map((fraction) => handOverDelayMs(uidAt(fraction), 100, queue, 0.5))
    expect(delays).toEqual([25, 75, 125])
  })

  test('the next round asks later where the API server is slow', () => {
    const delays = [0.1, 0.25].map((fraction) => handOverDelayMs(uidAt(fraction), 100, queue, 0.5, 100))
    expect(delays).toEqual([200, 600])
  })

  test('the next round asks within seconds, however long one answer took', () => {
    expect(handOverDelayMs(uidAt(0.25), 100, queue, 0.5, 25_000)).toBe(1_500)
  })

  test('about as many nodes ask for slots that nobody watches as there are, and never many for each that is taken', () => {
    const askers = (free: number): number => otherSlotsShare(free, 100, queue) * lineLength(100, queue)
    expect([0, 1, 20, 60, 90, 99].map((free) => Math.round(askers(free) * 10) / 10)).toEqual([0, 1, 20, 60, 15, 1.5])
  })

  test('every node may be first where ranks are uncertain', () => {
    for (const fraction of [0.01, 0.1, 0.2]) expect(handOverDelayMs(uidAt(fraction), 1, queue, 0)).toBe(0)
  })

  test('the soonest of those in line at a budget of 1 is soon', () => {
    const line = lineLength(1, { matched: 290, waiters: 290 })
    expect(handOverDelayMs(uidAt(0), 1, { matched: 290, waiters: 290 }, 1 / line)).toBeLessThanOrEqual(26)
  })

  test('the last waiter asks at once', () => {
    expect(handOverDelayMs(uidAt(0.9), 3, { matched: 15, waiters: 1 }, 0.99)).toBeLessThan(25)
  })

  test('losses pause longer and longer', () => {
    expect([1, 2, 3, 20].map((losses) => lostDelayMs(losses, 0))).toEqual([200, 400, 800, 30_000])
    expect(lostDelayMs(1, 0.5)).toBe(150)
  })

  test('a small queue looks every 30 s, those of a large one together once a second', () => {
    const small = { matched: 15, waiters: 12 }
    expect([0, 1, 9].map((looks) => lookDelayMs(looks, 3, small, 0))).toEqual([30_000, 30_000, 30_000])
    expect([0, 1, 9].map((looks) => lookDelayMs(looks, 100, queue, 0))).toEqual([210_000, 210_000, 210_000])
    expect(lookDelayMs(0, 3, small, 0.99)).toBeLessThan(45_000)
  })

  test('nodes that all watch the only slot look less often each time, about every five minutes in the end', () => {
    const looks = [0, 1, 9].map((count) => lookDelayMs(count, 1, { matched: 3, waiters: 2 }, 0))
    expect(looks).toEqual([30_000, 60_000, 300_000])
  })

  test('a distant node sleeps until it is next in line, at most half of its wait', () => {
    const nodesPerMs = 100 / 60_000
    const sleep = (fraction: number): number =>
      Math.round(sleepMs(uidAt(fraction), 100, queue, { nodesPerMs, lastSleepMs: 120_000 }, 0) / 6_000)
    expect(sleep(0.95)).toBe(42) // half of 850 nodes before it, at most 250 s
    expect(sleep(0.5)).toBe(19) // 400 before it, 210 of them in line
  })

  test('a distant node without progress sleeps twice as long each time, at most 0.25 s for each node', () => {
    const sleep = (lastSleepMs: number, matched: number): number =>
      sleepMs(uidAt(0.9), 1, { matched, waiters: matched }, { nodesPerMs: 0, lastSleepMs }, 0)
    expect([1_000, 4_000, 500_000].map((last) => sleep(last, 1_000))).toEqual([2_000, 8_000, 250_000])
    expect([50, 200, 5_000].map((matched) => sleep(500_000, matched))).toEqual([30_000, 50_000, 600_000])
  })

  test('a distant node of a small fleet is not asleep when the others are fast at last', () => {
    const slow = { nodesPerMs: 1 / 600_000, lastSleepMs: 60_000 }
    expect(sleepMs(uidAt(0.9), 1, { matched: 100, waiters: 90 }, slow, 0)).toBe(30_000)
  })

  test('a distant node does not rely for long on the speed of the first seconds, when hardly a node is done', () => {
    const first = { nodesPerMs: 1 / 8_000, lastSleepMs: 4_000 }
    expect(sleepMs(uidAt(0.9), 50, { matched: 500, waiters: 499 }, first, 0)).toBe(12_000)
  })

  test('a distant node expects at first that each node before it takes a second', () => {
    const progress = { nodesPerMs: 0, lastSleepMs: 0 }
    expect(Math.round(sleepMs(uidAt(0.9), 100, queue, progress, 0) / 1_000)).toBe(4)
    expect(Math.round(sleepMs(uidAt(0.9), 4, queue, progress, 0) / 1_000)).toBe(100)
  })

  test('as many nodes as there are slots are among the first, and the others wait for them, not long', () => {
    const all = { matched: 15, waiters: 15 }
    expect([0, 0.19, 0.21, 0.9].map((fraction) => isAmongFirst(uidAt(fraction), 3, all))).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect([0, 1].map(firstDelayMs)).toEqual([100, 200])
  })
})
