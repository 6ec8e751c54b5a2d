import { describe, expect, test } from 'vitest'
import {
  dueStepMs,
  frontOf,
  handOverDelayMs,
  handOverStepMs,
  hashFraction,
  isCrowded,
  isFront,
  lineLength,
  lostDelayMs,
  placeKey,
  rankOf,
  sleepMs,
  spareRanks,
} from './waiting.ts'

const uids = Array.from({ length: 1_000 }, (_, index) => `node-${index}`)
const inOrder = uids.toSorted((a, b) => (placeKey(a) < placeKey(b) ? -1 : 1))
describe('ranks', () => {
  test('the places of a thousand nodes are spread evenly', () => {
    for (let tenth = 0; tenth < 10; tenth++) {
      const count = uids.filter((uid) => Math.floor(hashFraction(uid) * 10) === tenth).length
      expect(count).toBeGreaterThan(70)
      expect(count).toBeLessThan(130)
    }
  })

  test('the rank of a node that the ledger names is exact, and about right beyond', () => {
    const waiting = inOrder.filter((_, index) => index % 3 > 0)
    const front = frontOf(waiting, 20)
    const errors = waiting.map((uid, index) => Math.abs(rankOf(uid, front, waiting.length) - index))
    expect(Math.max(...errors.slice(0, 20 + spareRanks))).toBe(0)
    expect(Math.max(...errors)).toBeLessThan(50)
    expect(errors.findIndex((error) => error > 0)).toBeGreaterThanOrEqual(20 + spareRanks)
  })

  test('a node that begins to wait is ranked among those that the ledger names', () => {
    const [newcomer, ...others] = inOrder as [string, ...string[]]
    expect(rankOf(newcomer, frontOf(others, 0), 999)).toBe(0)
    const last = inOrder.at(-1) as string
    expect(rankOf(last, frontOf(inOrder.slice(0, 3), 0), 3)).toBe(3)
    expect(rankOf(last, { due: 0, places: '' }, 1)).toBeLessThanOrEqual(1)
  })
})

describe('the front in a ledger', () => {
  test('it says how many are due, and names them and the next ones', () => {
    const front = frontOf(uids, 3)
    expect([front.due, front.places.length / 4]).toEqual([3, 3 + spareRanks])
    expect([isFront(front), isFront(frontOf([], 3)), frontOf([], 3).due, frontOf(uids, -2).due]).toEqual([
      true,
      true,
      0,
      0,
    ])
  })

  test.each([
    undefined,
    null,
    'front',
    {},
    { due: 1 },
    { due: -1, places: '' },
    { due: 1.5, places: '' },
    { due: 0, places: 'xyz0' },
    { due: 0, places: '12345' },
  ])('%j is no front', (value) => {
    expect(isFront(value)).toBe(false)
  })

  test('it stays small, however many slots are free', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => `uid-${index}`)
    const front = frontOf(many, 2_000)
    expect([front.due, front.places.length]).toEqual([2_000, 2_040])
    const ranks = many.map((uid) => rankOf(uid, front, many.length))
    const due = ranks.filter((rank) => rank < front.due).length
    expect(Math.abs(due - 2_000)).toBeLessThan(100) // those that it has no room for go by their estimated ranks
  })
})

describe('delays', () => {
  test('as many nodes as slots are free ask one after the other, the next ones give them time', () => {
    expect([0, 1, 2, 3, 4].map((rank) => handOverDelayMs(rank, 3, 50))).toEqual([0, 25, 50, 100, 150])
    expect([0, 1, 2].map((rank) => handOverDelayMs(rank, 1, 50))).toEqual([0, 50, 100])
  })

  test('the next node asks later where the API server is slow, but within seconds', () => {
    expect([0, 10, 100, 25_000].map(handOverStepMs)).toEqual([50, 50, 400, 1_000])
  })

  test('those who are due by the count ask within a second for each hundred of them', () => {
    expect([0, 50, 99].map((rank) => handOverDelayMs(rank, 100, dueStepMs))).toEqual([0, 400, 792])
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
