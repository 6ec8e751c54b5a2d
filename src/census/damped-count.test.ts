import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dampedCountDueAtMs, nextDampedCount, riseDelayMs, type DampedCount } from './damped-count.ts'

describe('the damped count', () => {
  /** `[at ms, counted, published]` in turn. */
  test.each<[string, [number, number, number][]]>([
    ['starts as counted', [[0, 6, 6]]],
    [
      'falls immediately',
      [
        [0, 6, 6],
        [1, 4, 4],
      ],
    ],
    [
      'rises once the rise has lasted',
      [
        [0, 6, 6],
        [1_000, 9, 6],
        [30_999, 9, 6],
        [31_000, 9, 9],
      ],
    ],
    [
      'does not rise for a node that left again',
      [
        [0, 6, 6],
        [1_000, 9, 6],
        [20_000, 6, 6],
        [40_000, 9, 6],
        [69_999, 9, 6],
        [70_000, 9, 9],
      ],
    ],
    [
      'rises by the part that lasted, and later by the rest',
      [
        [0, 6, 6],
        [1_000, 7, 6],
        [20_000, 12, 6],
        [31_000, 12, 7],
        [60_999, 12, 7],
        [61_000, 12, 12],
      ],
    ],
    [
      'falls during a pending rise',
      [
        [0, 6, 6],
        [1_000, 9, 6],
        [2_000, 5, 5],
        [3_000, 9, 5],
        [32_999, 9, 5],
        [33_000, 9, 9],
      ],
    ],
  ])('the published number %s', (_, steps) => {
    let matched: DampedCount | undefined
    for (const [atMs, counted, published] of steps) {
      matched = nextDampedCount(matched, counted, atMs)
      expect([atMs, matched.published]).toEqual([atMs, published])
    }
  })

  test('the published number is never above the count, and after 30 s never above the lowest count of that time', () => {
    const step = fc.record({ afterMs: fc.integer({ min: 0, max: 20_000 }), counted: fc.integer({ min: 0, max: 9 }) })
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
        let nowMs = 0
        let matched: DampedCount | undefined
        const history: { atMs: number; counted: number }[] = []
        for (const { afterMs, counted } of steps) {
          nowMs += afterMs
          const before = matched?.published
          matched = nextDampedCount(matched, counted, nowMs)
          history.push({ atMs: nowMs, counted })
          expect(matched.published).toBeLessThanOrEqual(counted)
          if (before === undefined || matched.published <= before) continue
          const since = history.filter(({ atMs }) => atMs > nowMs - riseDelayMs)
          expect(matched.published).toBeLessThanOrEqual(Math.min(...since.map((one) => one.counted)))
        }
      }),
    )
  })

  test('a pending rise is due when it will have lasted', () => {
    expect(dampedCountDueAtMs({ published: 6 })).toBe(Infinity)
    expect(dampedCountDueAtMs(nextDampedCount({ published: 6 }, 9, 1_000))).toBe(31_000)
  })
})
