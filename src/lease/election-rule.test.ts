import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  canAcquire,
  type Candidate,
  defaultTiming,
  delayAfterResigning,
  isCandidate,
  nextLookDelayMs,
  observe,
} from './election-rule.ts'
import type { Lease } from './slot.ts'

const lease = (holder: string, renewTime = '2026-11-20T14:00:00.000000Z', uid = 'u1'): Lease => ({
  metadata: { name: 'skyhookd-census', uid, resourceVersion: '1' },
  spec: { holderIdentity: holder, renewTime },
})
const candidate: Candidate = { identity: 'me', nowMs: 0, leaseDurationMs: 15_000, resignedDelayMs: 0 }

describe('canAcquire', () => {
  test.each<[string, Lease | undefined, Partial<Candidate>, boolean]>([
    ['takes an absent Lease', undefined, {}, true],
    ['takes a Lease that was given back', lease(''), {}, true],
    ['takes a Lease in its own name: it was restarted', lease('me'), {}, true],
    [
      'leaves a Lease that it has just seen for the first time, however old its times look',
      lease('other', '2001-01-01T00:00:00Z'),
      {},
      false,
    ],
    ['leaves a Lease that was unchanged for almost the duration', lease('other'), { nowMs: 14_999 }, false],
    ['takes a Lease that was unchanged for the duration', lease('other'), { nowMs: 15_000 }, true],
    ['that has resigned leaves a free Lease to others', lease(''), { nowMs: 29_999, resignedDelayMs: 30_000 }, false],
    ['that has resigned takes a Lease that nobody wants', lease(''), { nowMs: 30_000, resignedDelayMs: 30_000 }, true],
    [
      'that has resigned waits longer for a dead leader too',
      lease('other'),
      { nowMs: 44_999, resignedDelayMs: 30_000 },
      false,
    ],
    [
      'that has resigned waits for a Lease that it could not give back as for that of another',
      lease('me'),
      { nowMs: 44_999, resignedDelayMs: 30_000 },
      false,
    ],
  ])('a candidate %s', (_, found, now, expected) => {
    expect(canAcquire(observe(undefined, found, 0), { ...candidate, ...now })).toBe(expected)
  })

  test('a candidate counts from the last change that it saw itself', () => {
    const first = observe(undefined, lease('other'), 0)
    const renewed = observe(first, lease('other', '2026-11-20T14:00:05.000000Z'), 9_000)
    expect(canAcquire(renewed, { ...candidate, nowMs: 16_000 })).toBe(false)
    expect(observe(renewed, lease('other', '2026-11-20T14:00:05.000000Z'), 12_000).sinceMs).toBe(9_000)
  })

  test('a Lease that was deleted and created again counts as another one', () => {
    const first = observe(undefined, lease('other'), 0)
    expect(observe(first, lease('other', undefined, 'u2'), 9_000).sinceMs).toBe(9_000)
  })

  test('a candidate never takes a Lease that is renewed in time, whatever the wall clocks say', () => {
    const polls = fc.array(
      fc.record({ afterMs: fc.integer({ min: 1, max: 14_000 }), clock: fc.integer({ min: 0, max: 2 ** 40 }) }),
    )
    fc.assert(
      fc.property(polls, (polls) => {
        let nowMs = 0
        let observation = observe(undefined, lease('other', 'at first'), nowMs)
        for (const [round, { afterMs, clock }] of polls.entries()) {
          nowMs += afterMs
          // renewed between two looks
          observation = observe(observation, lease('other', `${new Date(clock).toISOString()} ${round}`), nowMs)
          expect(canAcquire(observation, { ...candidate, nowMs })).toBe(false)
        }
      }),
    )
  })
})

describe('delayAfterResigning', () => {
  test.each([
    [0, 1, 60_000],
    [0, 8, 60_000],
    [1, 2, 30_000],
    [1, 3, 45_000],
    [2, 3, 30_000],
    [30, 8, 30_000],
    [undefined, 8, 30_000],
  ])('a candidate that resigned %s terms ago, one of %d, waits %d ms', (terms, agents, delayMs) => {
    expect(delayAfterResigning(defaultTiming, terms, agents)).toBe(delayMs)
  })

  test('a turn is longer than what candidates can see the end of a term apart', () => {
    const { lookIntervalMs, resignedTurnMs } = defaultTiming
    expect(resignedTurnMs).toBeGreaterThan(lookIntervalMs + lookIntervalMs / 4)
  })
})

describe('nextLookDelayMs', () => {
  const at = Date.parse('2026-11-20T14:00:00Z')
  const context = {
    timing: defaultTiming,
    isCandidate: true,
    agents: 1_000,
    isFirst: false,
    random: 1,
    nowMs: 0,
    wallMs: at + 1_000,
  }

  test('a candidate looks at least every 10 s, and another agent the more rarely the more agents there are', () => {
    const observation = observe(undefined, lease('other'), 0)
    expect(nextLookDelayMs(observation, context)).toBe(10_000)
    const idle = [1, 9, 40, 900, 5_000].map((agents) =>
      nextLookDelayMs(observation, { ...context, isCandidate: false, agents }),
    )
    expect(idle).toEqual([30_000, 30_000, 80_000, 1_800_000, 1_800_000])
    expect(nextLookDelayMs(observation, { ...context, random: 0 })).toBe(6_000)
  })

  test('an agent that is not a candidate looks a second time within two minutes, and then knows how many agents there are', () => {
    const observation = observe(undefined, lease('other'), 0)
    expect(nextLookDelayMs(observation, { ...context, isCandidate: false, isFirst: true })).toBe(120_000)
    expect(nextLookDelayMs(observation, { ...context, isFirst: true })).toBe(10_000)
  })

  test('agents look two or three times a second, all together, however many they are', () => {
    const observation = observe(undefined, lease('other'), 0)
    for (const agents of [20, 40, 100, 1_000, 5_000]) {
      let perSecond = 1_000 / defaultTiming.renewIntervalMs
      for (let agent = 0; agent < agents; agent++) {
        const delayMs = (random: number): number =>
          nextLookDelayMs(observation, {
            ...context,
            isCandidate: isCandidate(`node-${agent}`, agents),
            agents,
            random,
          })
        perSecond += 1_000 / ((delayMs(0) + delayMs(1)) / 2)
      }
      expect(perSecond).toBeLessThan(agents > 1_000 ? 2 + agents / 1_400 : 2.5)
    }
  })

  test('every agent, candidate or not, polls a Lease that seems abandoned when it can be taken', () => {
    const observation = observe(undefined, lease('other'), 0)
    for (const isCandidate of [true, false])
      expect(
        nextLookDelayMs(observation, {
          ...context,
          isCandidate,
          wallMs: at + 11_000,
          nowMs: isCandidate ? 9_000 : 4_000,
        }),
      ).toBe(isCandidate ? 6_000 : 11_000)
  })

  test('a clock that is far ahead costs a few more looks and nothing else', () => {
    const observation = observe(undefined, lease('other'), 0)
    expect(nextLookDelayMs(observation, { ...context, wallMs: at + 10 ** 9, nowMs: 14_900 })).toBe(2_500)
    const renewed = observe(observation, lease('other', '2026-11-20T14:00:05.000000Z'), 15_000)
    expect(nextLookDelayMs(renewed, { ...context, isCandidate: false, wallMs: at + 10 ** 9, nowMs: 15_000 })).toBe(
      1_800_000,
    )
  })

  test('a candidate that is left alone takes over from a dead leader within 25 s', () => {
    // the leader renews at 0 and dies; the candidate looks at the worst moment
    for (let firstLookMs = 1; firstLookMs <= 10_000; firstLookMs += 333) {
      let observation = observe(undefined, lease('other', 'before'), firstLookMs - 10_000)
      for (let nowMs = firstLookMs; ; ) {
        observation = observe(observation, lease('other'), nowMs)
        if (canAcquire(observation, { ...candidate, nowMs })) {
          expect(nowMs).toBeLessThanOrEqual(25_000)
          break
        }
        nowMs += nextLookDelayMs(observation, { ...context, nowMs, wallMs: at + nowMs })
      }
    }
  })
})

describe('candidates', () => {
  test('every agent of a small cluster is a candidate', () => {
    for (let agent = 0; agent < 8; agent++) expect(isCandidate(`node-${agent}`, 8)).toBe(true)
  })

  test('about eight agents of a large cluster are candidates', () => {
    const counts = Array.from({ length: 50 }, (_, cluster) =>
      Array.from({ length: 1_000 }, (_, agent) => isCandidate(`c${cluster}-node-${agent}`, 1_000)).filter(Boolean),
    ).map(({ length }) => length)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    expect(counts.reduce((sum, one) => sum + one, 0) / counts.length).toBeCloseTo(8, 0)
  })
})
