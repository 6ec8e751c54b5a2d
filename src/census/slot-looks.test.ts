import { expect, test } from 'vitest'
import { countsOf, nodeReporting, skyhookWith } from '../../test/kit/objects/census-objects.ts'
import type { CompartmentCount } from './compartments.ts'
import { type Expectation, looksAfter, looksNow, nextLookAtMs, type SlotLooks } from './slot-looks.ts'

const compartment = (name: string, ...statuses: string[]): CompartmentCount => ({
  name,
  nodes: countsOf(
    skyhookWith(),
    statuses.map((status, at) => nodeReporting(`n${at}`, { status })),
  ).nodes,
})
const byStatus = (): Expectation => 'by-status'

test('the census looks soon after the last node of a batch is done, and then less and less often', () => {
  const done = [compartment('a', 'complete', 'waiting')]
  let looks: SlotLooks = looksNow(new Map(), done, undefined, 1_000)
  expect(nextLookAtMs(looks)).toBe(1_200)
  const delays: number[] = []
  for (let nowMs = 1_200; delays.length < 8; nowMs = nextLookAtMs(looks)) {
    looks = looksAfter(looksNow(looks, done, undefined, nowMs), done, byStatus, nowMs)
    delays.push(nextLookAtMs(looks) - nowMs)
  }
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
})

test('a compartment whose nodes are at work does not put off the looks at another one', () => {
  const other = compartment('b', 'complete')
  let looks: SlotLooks = new Map()
  for (let second = 0; second < 20; second++) {
    const busy = compartment('a', 'in_progress', second % 2 === 0 ? 'waiting' : 'in_progress')
    looks = looksNow(looks, [busy, other], undefined, second * 1_000)
  }
  expect(nextLookAtMs(looks)).toBe(200)
})

test('a compartment without slots is not looked at before something changes', () => {
  const all = [compartment('a', 'complete')]
  const looks = looksAfter(looksNow(new Map(), all, undefined, 0), all, () => 'nothing', 200)
  expect(nextLookAtMs(looksNow(looks, all, undefined, 900_000))).toBe(Infinity)
  expect(nextLookAtMs(looksNow(looks, [compartment('a', 'waiting')], undefined, 900_000))).toBe(900_200)
})
