import { describe, expect, test } from 'vitest'
import {
  handOverDelayMs,
  handOverStepMs,
  hashFraction,
  isCrowded,
  lineLength,
  lostDelayMs,
  rankOf,
  sleepMs,
  watchedIndices,
} from './waiting.ts'

const uids = Array.from({ length: 1_000 }, (_, index) => `node-${index}`)
const inOrder = uids.toSorted((a, b) => hashFraction(a) - hashFraction(b))

describe('ranks', () => {
  test('the places of a thousand nodes are spread evenly', () => {
    for (let tenth = 0; tenth < 10; tenth++) {
      const count = uids.filter((uid) => Math.floor(hashFraction(uid) * 10) === tenth).length
      expect(count).toBeGreaterThan(70)
      expect(count).toBeLessThan(130)
    }
  })

  test('a rank is about the number of waiting nodes that come before', () => {
    const waiting = inOrder.slice(300)
    const queue = { matched: 1_000, waiters: 700 }
    const errors = waiting.map((uid, index) => Math.abs(rankOf(uid, queue) - index))
    expect(Math.max(...errors)).toBeLessThan(50)
    expect(rankOf(inOrder[0] as string, queue)).toBe(0) // one that starts to wait
    expect(rankOf(inOrder[0] as string, { matched: 1_000, waiters: 1_001 })).toBe(0)
  })
})

describe('what a node in line watches', () => {
  const watchersOf = (nodes: readonly string[], limit: number): number[] => {
    const watched = nodes.map((uid) => watchedIndices(uid, limit, nodes.length))
    return Array.from({ length: limit }, (_, index) => watched.filter((one) => one.includes(index as never)).length)
  }

  test('each of many slots has watchers, and none has many', () => {
    const line = lineLength(100, 1_000)
    const counts = watchersOf(uids.slice(0, line), 100)
    expect(counts.reduce((sum, count) => sum + count, 0) / 100).toBeGreaterThan(7)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    expect(Math.max(...counts)).toBeLessThan(20)
  })

  test('a few slots in order and no index twice, the same for as long as nothing changes', () => {
    const watched = watchedIndices('node-1', 40, 90)
    expect(watched).toEqual(watchedIndices('node-1', 40, 85))
    expect(watched).toEqual([...new Set(watched as number[])].toSorted((a, b) => a - b))
    expect(watched.length).toBeLessThanOrEqual(4)
    expect((watched as number[]).every((index) => index >= 0 && index < 40)).toBe(true)
  })

  test('all of few slots, and more of them the fewer nodes are left', () => {
    expect([1, 16].map((limit) => watchedIndices('node-1', limit, 50))).toEqual(['all', 'all'])
    const left = [90, 40, 20].map((rivals) => watchedIndices('node-1', 40, rivals).length)
    expect(left).toEqual(left.toSorted((a, b) => a - b))
    expect([15, 0].map((rivals) => watchedIndices('node-1', 40, rivals))).toEqual(['all', 'all'])
  })
})

describe('delays', () => {
  test('those who see a slot draw, about one for each step', () => {
    expect([0, 0.5, 0.99].map((random) => handOverDelayMs(8, 1, 50, random))).toEqual([0, 200, 396])
    expect(handOverDelayMs(0.1, 3, 50, 0.5)).toBe(25)
  })

  test('many free slots are asked for at a rate that an API server can bear', () => {
    expect(handOverDelayMs(2, 100, 50, 0.5)).toBe(400)
  })

  test('the next node asks later where the API server is slow, but within seconds', () => {
    expect([0, 10, 100, 25_000].map(handOverStepMs)).toEqual([40, 40, 400, 1_000])
  })

  test('losses pause longer and longer', () => {
    expect([1, 2, 3, 20].map((losses) => lostDelayMs(losses, 0))).toEqual([200, 400, 800, 30_000])
    expect(lostDelayMs(1, 0.5)).toBe(150)
  })
})

describe('the sleep of a distant node', () => {
  const nothing = { ms: 0, done: 0 }

  test('it lasts until the node is in line, at most half of its wait', () => {
    const sleep = (rank: number): number => Math.round(sleepMs(rank, 100, 1_000, { ms: 300_000, done: 500 }, 0) / 6_000)
    expect(sleep(850)).toBe(42) // half of them, at most 250 s
    expect(sleep(400)).toBe(19) // 210 of them in line
  })

  test('without progress it is twice as long as all sleep before, at most 0.25 s for each node', () => {
    const sleep = (ms: number, matched: number): number => sleepMs(0.9 * matched, 1, matched, { ms, done: 0 }, 0)
    expect([1_000, 4_000, 500_000].map((ms) => sleep(ms, 1_000))).toEqual([2_000, 8_000, 250_000])
    expect([50, 200, 5_000].map((matched) => sleep(500_000, matched))).toEqual([30_000, 50_000, 600_000])
  })

  test('it is short in a small fleet, for when the others are fast at last', () => {
    expect(sleepMs(80, 1, 100, { ms: 600_000, done: 1 }, 0)).toBe(30_000)
  })

  test('it does not rely for long on the speed of the first seconds, when hardly a node is done', () => {
    expect(sleepMs(450, 50, 500, { ms: 8_000, done: 1 }, 0)).toBe(16_000)
  })

  test('it expects at first that each node before it takes two seconds', () => {
    expect(Math.round(sleepMs(800, 100, 1_000, nothing, 0) / 1_000)).toBe(8)
    expect(Math.round(sleepMs(800, 4, 1_000, nothing, 0) / 1_000)).toBe(200)
  })

  test('the line is long enough for guesses at small budgets', () => {
    expect([lineLength(1, 290), lineLength(100, 1_000), lineLength(1, 15)]).toEqual([37, 210, 17])
    expect([isCrowded(17, 1), isCrowded(19, 1)]).toEqual([false, true])
  })
})
