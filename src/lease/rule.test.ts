import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  admissibleIndices,
  bootstrapLimit,
  effectiveLimit,
  isStillAdmissible,
  pickIndex,
  type CountedScope,
  type Limit,
} from './rule.ts'
import type { Budget } from '../schemas/budget.ts'

/** Distinct indices, some beyond any limit of the test, and slots without an index. */
const heldIndicesArbitrary = fc
  .tuple(fc.uniqueArray(fc.nat(10)), fc.nat(3))
  .map(([indices, recoveries]) => [...indices, ...Array.from({ length: recoveries }, () => Infinity)])

describe('a falling budget', () => {
  test.each([
    { held: [1], limit: 1, may: [] }, // 0 is free and below the limit, and taking it would make two
    { held: [0, 3], limit: 3, may: [1] },
    { held: [2, 3], limit: 3, may: [0] },
    { held: [1, 2], limit: 2, may: [] },
    { held: [Infinity], limit: 1, may: [] }, // a host found half changed counts first
    { held: [Infinity, 0], limit: 3, may: [1] },
    { held: [], limit: 3, may: [0, 1, 2] },
    { held: [], limit: 0, may: [] },
  ])('with $held held under a limit of $limit, a node may take $may', ({ held, limit, may }) => {
    expect(admissibleIndices(held, limit)).toEqual(may)
  })
})

describe('properties', () => {
  test('a full scope admits no node, and any other scope admits one', () => {
    fc.assert(
      fc.property(heldIndicesArbitrary, fc.nat(10), (held, limit) => {
        expect(admissibleIndices(held, limit).length > 0).toBe(held.length < limit)
      }),
    )
  })

  test('the admissible indices are free, ascending, and exactly those that satisfy the rule', () => {
    fc.assert(
      fc.property(heldIndicesArbitrary, fc.nat(10), (held, limit) => {
        const expected = Array.from({ length: 20 }, (_, index) => index).filter(
          (index) => !held.includes(index) && isStillAdmissible(index, held, limit),
        )
        expect(admissibleIndices(held, limit)).toEqual(expected)
      }),
    )
  })

  test('a node that is admitted under a limit is admitted under every larger one', () => {
    fc.assert(
      fc.property(heldIndicesArbitrary, fc.nat(10), fc.nat(10), (held, limit, more) => {
        const larger = admissibleIndices(held, limit + more)
        expect(admissibleIndices(held, limit).filter((index) => !larger.includes(index))).toEqual([])
      }),
    )
  })

  test('nodes admitted one after the other all stay admissible', () => {
    fc.assert(
      fc.property(heldIndicesArbitrary, fc.nat(10), fc.array(fc.string()), (before, limit, nodes) => {
        const held = [...before]
        for (const node of nodes) {
          const index = pickIndex(admissibleIndices(held, limit), node)
          if (index === undefined) break
          expect(isStillAdmissible(index, held, limit)).toBe(true)
          held.push(index)
        }
        expect(held.length).toBeLessThanOrEqual(Math.max(limit, before.length))
      }),
    )
  })
})

test('an absurd budget has no more indices than the largest cluster has nodes', () => {
  expect(admissibleIndices([3, Infinity], 2 ** 31).length).toBe(65_536 - 2)
})

describe('pickIndex', () => {
  test('a node picks the same index again, and none where nothing is free', () => {
    expect(pickIndex([4, 7, 9], 'node')).toBe(pickIndex([4, 7, 9], 'node'))
    expect(pickIndex([], 'node')).toBeUndefined()
  })

  test('nodes spread evenly over the free indices', () => {
    const free = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    const taken = free.map(() => 0)
    for (let i = 0; i < 5000; i++)
      taken[pickIndex(free, `0a1b2c3d-0000-4000-8000-${i.toString(16).padStart(12, '0')}`) ?? 0]! += 1
    for (const count of taken) expect(count).toBeGreaterThan(400)
  })
})

describe('effectiveLimit', () => {
  const none: CountedScope = { unknown: 'no census yet' }
  const counted = (matched: number): CountedScope => ({ matched })
  test.each<{ spec?: Budget; counted: CountedScope; is: Limit }>([
    { counted: none, is: 'unlimited' },
    { spec: {}, counted: none, is: 'unlimited' },
    { spec: { count: 3 }, counted: none, is: 3 },
    { spec: { count: 0 }, counted: none, is: 0 },
    { spec: { percent: 0 }, counted: none, is: 0 },
    { spec: { percent: 10 }, counted: none, is: none as Limit },
    { spec: { percent: 10 }, counted: counted(99), is: 9 },
    { spec: { percent: 10 }, counted: counted(3), is: 1 },
    { spec: { percent: 100 }, counted: counted(812), is: 812 },
    { spec: { percent: 29 }, counted: counted(100), is: 29 }, // 0.29 * 100 would give 28
    { spec: { percent: 57 }, counted: counted(100), is: 57 },
    { spec: { percent: 50, maxCount: 20 }, counted: counted(100), is: 20 },
    { spec: { percent: 50, maxCount: 80 }, counted: counted(100), is: 50 },
  ])('spec $spec and count $counted give the limit $is', ({ spec, counted, is }) => {
    expect(effectiveLimit(spec, counted)).toEqual(is)
  })
})

describe('the budget of joining nodes', () => {
  const none: CountedScope = { unknown: 'no census yet' }
  test.each<{ count?: number; limit: Limit; counted: CountedScope; is: Limit }>([
    { limit: 3, counted: { matched: 10 }, is: 3 },
    { limit: 3, counted: { matched: 100 }, is: 10 },
    { limit: 1, counted: { matched: 3 }, is: 1 },
    { limit: 3, counted: none, is: 3 },
    { limit: 0, counted: { matched: 100 }, is: 0 },
    { limit: 'unlimited', counted: { matched: 100 }, is: 'unlimited' },
    { limit: none as Limit, counted: none, is: none as Limit },
    { count: 5, limit: 3, counted: { matched: 100 }, is: 5 },
    { count: 0, limit: 3, counted: { matched: 100 }, is: 0 },
    { count: 5, limit: 'unlimited', counted: none, is: 5 },
    { count: 5, limit: none as Limit, counted: none, is: 5 },
  ])('spec $count beside a limit of $limit and $counted gives $is', ({ count, limit, counted, is }) => {
    expect(bootstrapLimit(count, limit, counted)).toEqual(is)
  })
})
