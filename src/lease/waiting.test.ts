import { describe, expect, test } from 'vitest'
import {
  dueDelayMs,
  frontOf,
  handOverDelayMs,
  handOverStepMs,
  hashFraction,
  isAmongFirst,
  lineLength,
  lostDelayMs,
  lotDelayMs,
  placeKey,
  rankOf,
  readFront,
  sleepMs,
  spareRanks,
  writeFront,
} from './waiting.ts'

const uids = Array.from({ length: 1_000 }, (_, index) => `node-${index}`)
const inOrder = uids.toSorted((a, b) => (placeKey(a) < placeKey(b) ? -1 : 1))
/** A node of a thousand with about this place. */
const uidAt = (fraction: number): string =>
  uids.reduce((best, uid) =>
    Math.abs(hashFraction(uid) - fraction) < Math.abs(hashFraction(best) - fraction) ? uid : best,
  )

describe('ranks', () => {
  test('the places of a thousand nodes are spread evenly', () => {
    for (let tenth = 0; tenth < 10; tenth++) {
      const count = uids.filter((uid) => Math.floor(hashFraction(uid) * 10) === tenth).length
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

  test('the rank of a node that the ledger names is exact, and about right beyond', () => {
    const waiting = inOrder.filter((_, index) => index % 3 > 0)
    const queue = { matched: 1_000, waiters: waiting.length, front: frontOf(waiting, 20) }
    const errors = waiting.map((uid, index) => Math.abs(rankOf(uid, queue) - index))
    expect(Math.max(...errors.slice(0, 20 + spareRanks))).toBe(0)
    expect(Math.max(...errors)).toBeLessThan(50)
    expect(errors.findIndex((error) => error > 0)).toBeGreaterThanOrEqual(20 + spareRanks)
  })

  test('a node that begins to wait is ranked among those that the ledger names', () => {
    const [newcomer, ...others] = inOrder as [string, ...string[]]
    expect(rankOf(newcomer, { matched: 1_000, waiters: 999, front: frontOf(others, 0) })).toBe(0)
    const last = inOrder.at(-1) as string
    expect(rankOf(last, { matched: 1_000, waiters: 3, front: frontOf(inOrder.slice(0, 3), 0) })).toBe(3)
    expect(rankOf(last, { matched: 1_000, waiters: 1, front: { due: 0, places: [] } })).toBeLessThanOrEqual(1)
  })

  test('the nodes with the first places are among the first, as many as there are slots', () => {
    expect([0, 0.19, 0.21, 0.9].map((fraction) => isAmongFirst(uidAt(fraction), 3, 15))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})

describe('the front in a ledger', () => {
  test('it is read as it was written', () => {
    const front = frontOf(uids, 3)
    expect([front.due, front.places.length]).toEqual([3, 3 + spareRanks])
    expect(readFront(JSON.parse(JSON.stringify(writeFront(front))))).toEqual(front)
    expect(readFront(writeFront(frontOf([], 3)))).toEqual({ due: 0, places: [] })
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
    expect(readFront(value)).toBeUndefined()
  })

  test('it stays small, however many slots are free', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => `uid-${index}`)
    expect(writeFront(frontOf(many, 5_000)).places.length).toBeLessThan(2_100)
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

  test('where nobody knows who comes first, about one node asks while others cannot see it yet', () => {
    expect([lotDelayMs(10, 1, 0), lotDelayMs(10, 1, 0.5), lotDelayMs(10, 5, 0.5), lotDelayMs(1, 3, 0.5)]).toEqual([
      0, 125, 25, 12.5,
    ])
  })

  test('those who are due ask within a second for each hundred of them', () => {
    expect([dueDelayMs(1, 0.5), dueDelayMs(100, 0), dueDelayMs(100, 0.99)]).toEqual([4, 0, 792])
  })

  test('losses pause longer and longer', () => {
    expect([1, 2, 3, 20].map((losses) => lostDelayMs(losses, 0))).toEqual([200, 400, 800, 30_000])
    expect(lostDelayMs(1, 0.5)).toBe(150)
  })
})

describe('the sleep of a distant node', () => {
  const none = { nodesPerMs: 0, lastSleepMs: 0 }

  test('it lasts until the node is in line, at most half of its wait', () => {
    const nodesPerMs = 100 / 60_000
    const sleep = (rank: number): number =>
      Math.round(sleepMs(rank, 100, 1_000, { nodesPerMs, lastSleepMs: 120_000 }, 0) / 6_000)
    expect(sleep(850)).toBe(42) // half of them, at most 250 s
    expect(sleep(400)).toBe(19) // 210 of them in line
  })

  test('without progress it is twice as long each time, at most 0.25 s for each node', () => {
    const sleep = (lastSleepMs: number, matched: number): number =>
      sleepMs(0.9 * matched, 1, matched, { nodesPerMs: 0, lastSleepMs }, 0)
    expect([1_000, 4_000, 500_000].map((last) => sleep(last, 1_000))).toEqual([2_000, 8_000, 250_000])
    expect([50, 200, 5_000].map((matched) => sleep(500_000, matched))).toEqual([30_000, 50_000, 600_000])
  })

  test('it is short in a small fleet, for when the others are fast at last', () => {
    expect(sleepMs(80, 1, 100, { nodesPerMs: 1 / 600_000, lastSleepMs: 60_000 }, 0)).toBe(30_000)
  })

  test('it does not rely for long on the speed of the first seconds, when hardly a node is done', () => {
    expect(sleepMs(450, 50, 500, { nodesPerMs: 1 / 8_000, lastSleepMs: 4_000 }, 0)).toBe(12_000)
  })

  test('it expects at first that each node before it takes two seconds', () => {
    expect(Math.round(sleepMs(800, 100, 1_000, none, 0) / 1_000)).toBe(8)
    expect(Math.round(sleepMs(800, 4, 1_000, none, 0) / 1_000)).toBe(200)
  })

  test('the line is long enough for guesses at small budgets', () => {
    expect([lineLength(1, 290), lineLength(100, 1_000), lineLength(1, 15)]).toEqual([37, 210, 17])
  })
})
