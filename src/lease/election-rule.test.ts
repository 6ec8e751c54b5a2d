import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultTiming, canAcquire, nextPollDelayMs, observe, type Candidate } from './election-rule.ts'
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

describe('nextPollDelayMs', () => {
  const at = Date.parse('2026-11-20T14:00:00Z')
  const pollContext = { timing: defaultTiming, random: 0.5, nowMs: 0, wallMs: at + 1_000 }

  test.each([
    [3, 5_000],
    [1_000, 10_000],
    [100_000, 60_000],
  ])('each of %i candidates polls after %i ms while the leader renews', (candidates, ms) => {
    expect(nextPollDelayMs(observe(undefined, lease('other'), 0), { ...pollContext, candidates })).toBe(ms)
  })

  test('all candidates together poll at most about a hundred times a second', () => {
    for (const candidates of [1, 10, 200, 1_000, 5_000]) {
      const everyMs = nextPollDelayMs(observe(undefined, lease('other'), 0), { ...pollContext, candidates })
      expect(candidates / (everyMs / 1000)).toBeLessThanOrEqual(100)
    }
  })

  test('a candidate polls a Lease that seems abandoned when it can be taken, in a large fleet too', () => {
    const observation = observe(undefined, lease('other'), 0)
    expect(nextPollDelayMs(observation, { ...pollContext, candidates: 5_000, wallMs: at + 11_000, nowMs: 4_000 })).toBe(
      11_000,
    )
  })

  test('a clock that is far ahead costs a few more polls and nothing else', () => {
    const observation = observe(undefined, lease('other'), 0)
    expect(
      nextPollDelayMs(observation, { ...pollContext, candidates: 5_000, wallMs: at + 10 ** 9, nowMs: 14_900 }),
    ).toBe(2_500)
  })
})
