import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countsOf, nodeReporting, skyhookWith, spec } from '../../../test/kit/objects/census-objects.ts'
import { type Ledger, selectorHash } from '../../lease/ledger.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import {
  type DampedCount,
  dampedCountDueAtMs,
  type LedgerPlan,
  nextDampedCount,
  nextWorkTimes,
  planLedger,
  riseDelayMs,
  type WorkTimes,
} from './ledger-plan.ts'

type Scenario = {
  skyhook?: Skyhook
  currentLedger?: Ledger
  isKept?: boolean
  matched?: LedgerPlan['matched']
  complete?: number
  nodes?: number
  waiters?: number
  agents?: number
  lastWriteMs?: number
  slotTimes?: LedgerPlan['ledger']['slotTimes']
  nowMs?: number
}

function plan(scenario: Scenario = {}): LedgerPlan {
  const { skyhook = skyhookWith(), nodes = 6, complete = 0, waiters = 0, agents = 6, nowMs = 100_000 } = scenario
  const all = Array.from({ length: nodes }, (_, at) =>
    nodeReporting(
      `n${at}`,
      at < complete
        ? {}
        : { status: 'waiting', reason: [at < complete + waiters ? 'WaitingForSlot' : 'WaitingForPriority', 'x'] },
    ),
  )
  const counts = countsOf(skyhook, all)
  const { currentLedger, isKept = false, matched, lastWriteMs, slotTimes = [] } = scenario
  return planLedger({
    skyhook,
    counts,
    agents,
    currentLedger,
    isKept,
    matched,
    slotTimes,
    lastWriteMs,
    nowMs,
    wallMs: Date.UTC(2026, 10, 20, 14),
  })
}
const base = (): Ledger => plan().ledger

test('the ledger has the counts, and for which Skyhook, spec and selector they are', () => {
  expect(plan({ complete: 2, waiters: 3 }).ledger).toEqual({
    v: 1,
    skyhookUID: 'demo-uid',
    generation: 3,
    applied: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    selectorHash: selectorHash(undefined),
    agents: 6,
    waiters: 3,
    countedAt: '2026-11-20T14:00:00Z',
    compartments: { '': { matched: 6, completed: 2 } },
  })
})

describe('the time of a write', () => {
  const other = skyhookWith({ spec: { ...spec, nodeSelectors: { matchLabels: { 'kubernetes.io/hostname': 'n1' } } } })
  test.each<[string, Scenario, number]>([
    ['that is missing is written immediately', {}, -Infinity],
    ['without changes is not written', { currentLedger: base() }, Infinity],
    ['is written immediately when a node left', { currentLedger: base(), nodes: 5, lastWriteMs: 99_999 }, -Infinity],
    ['is not written for a new node before it has stayed', { currentLedger: base(), nodes: 7 }, Infinity],
    [
      'of another selector is replaced immediately',
      { currentLedger: base(), skyhook: other, lastWriteMs: 99_999 },
      -Infinity,
    ],
    ['of an earlier generation is replaced immediately', { currentLedger: { ...base(), generation: 2 } }, -Infinity],
    [
      'of a later generation is not replaced while this view may be outdated',
      { currentLedger: { ...base(), generation: 4 }, isKept: true, nodes: 2 },
      Infinity,
    ],
    [
      'of a generation that etcd has lost is replaced immediately',
      { currentLedger: { ...base(), generation: 4 } },
      -Infinity,
    ],
    [
      'of an earlier Skyhook of the name is replaced immediately',
      { currentLedger: { ...base(), skyhookUID: 'x', generation: 9 } },
      -Infinity,
    ],
    [
      'is not written for how long slots were held alone',
      { currentLedger: base(), slotTimes: [{ applied: 'x', lengths: { 3: 1 } }] },
      Infinity,
    ],
    ['is written when the first node waits', { currentLedger: base(), waiters: 1 }, -Infinity],
    [
      'is written at its interval when many nodes wait',
      { currentLedger: { ...base(), waiters: 2 }, waiters: 4, lastWriteMs: 99_999 },
      99_999 + 1_000,
    ],
    [
      'is written less often among thousands of agents',
      { currentLedger: { ...base(), waiters: 2, agents: 20_000 }, waiters: 4, agents: 20_000, lastWriteMs: 99_999 },
      99_999 + 5_000,
    ],
    [
      'is not written for a few more of many waiters',
      {
        currentLedger: { ...base(), waiters: 30, compartments: { '': { matched: 50, completed: 0 } } },
        nodes: 50,
        waiters: 34,
      },
      Infinity,
    ],
    [
      'is written when five fewer of many wait',
      {
        currentLedger: { ...base(), waiters: 300, compartments: { '': { matched: 350, completed: 0 } } },
        nodes: 350,
        waiters: 295,
      },
      -Infinity,
    ],
    [
      'is written when the last node completes',
      {
        currentLedger: { ...base(), compartments: { '': { matched: 50, completed: 49 } } },
        nodes: 50,
        complete: 50,
        lastWriteMs: 0,
      },
      1_000,
    ],
    [
      'is not written for one more complete node of many',
      { currentLedger: { ...base(), compartments: { '': { matched: 50, completed: 40 } } }, nodes: 50, complete: 41 },
      Infinity,
    ],
  ])('a ledger %s', (_, scenario, atMs) => {
    expect(plan(scenario).writeAtMs).toBe(atMs)
  })

  test('a ledger counts more nodes once they have stayed, also after another census took over', () => {
    const first = plan({ currentLedger: base(), nodes: 9, nowMs: 0 })
    expect(first.ledger.compartments).toEqual({ '': { matched: 6, completed: 0 } })
    const later = plan({ currentLedger: base(), matched: first.matched, nodes: 9, nowMs: 30_000 })
    expect(later).toMatchObject({ ledger: { compartments: { '': { matched: 9 } } }, writeAtMs: -Infinity })
    expect(plan({ currentLedger: base(), nodes: 9, nowMs: 30_000 }).ledger.compartments).toEqual({
      '': { matched: 6, completed: 0 },
    })
  })

  test('a pending rise of another selector does not count', () => {
    const pendingRise = plan({ currentLedger: base(), nodes: 9, nowMs: 0 }).matched
    expect(
      plan({ currentLedger: base(), skyhook: other, matched: pendingRise, nodes: 9, nowMs: 40_000 }).ledger
        .compartments,
    ).toEqual({
      '': { matched: 1, completed: 0 },
    })
  })
})

/** What is counted after these turns of one node, a minute apart. */
function after(statuses: readonly NodeStatus[], slotTimes?: Ledger['slotTimes']): WorkTimes['slotTimes'] {
  let lengths: WorkTimes | undefined
  const ledger = slotTimes && ({ slotTimes } as Ledger)
  for (const [at, status] of statuses.entries())
    lengths = nextWorkTimes(lengths, { nodes: [{ name: 'n1', status }], applied: 'new' }, ledger, at * 60_000)
  return lengths?.slotTimes ?? []
}
const oneMinute = 19 // 1.25^19 s = 69 s
const threeMinutes = 24
const once = (length: number) => [{ applied: 'new', lengths: { [length]: 1 } }]

test.each<[string, readonly NodeStatus[], WorkTimes['slotTimes']]>([
  ['works and completes', ['waiting', 'in_progress', 'complete'], once(oneMinute)],
  ['fails in between', ['waiting', 'in_progress', 'erroring', 'in_progress', 'complete'], once(threeMinutes)],
  ['is paused in between', ['waiting', 'in_progress', 'paused', 'in_progress', 'complete'], once(threeMinutes)],
  ['falls silent in between', ['waiting', 'in_progress', 'unknown', 'unknown', 'complete'], once(threeMinutes)],
  ['was at work before this census', ['in_progress', 'in_progress', 'complete'], []],
  [
    'was at work before this census, and works again',
    ['in_progress', 'complete', 'in_progress', 'complete'],
    once(oneMinute),
  ],
  ['gave its slot back', ['waiting', 'in_progress', 'waiting', 'complete'], []],
  ['is complete from the beginning', ['complete', 'complete'], []],
])('a node that %s is counted by how long it was at work', (_, statuses, slotTimes) => {
  expect(after(statuses)).toEqual(slotTimes)
})

test('a census continues the times in the ledger, of earlier rollouts and of this one', () => {
  const earlier = { applied: 'old', lengths: { 3: 7 } }
  const statuses: NodeStatus[] = ['waiting', 'in_progress', 'complete']
  expect(after(statuses, [earlier, ...once(oneMinute)])).toEqual([
    earlier,
    { applied: 'new', lengths: { [oneMinute]: 2 } },
  ])
})

test('a node that is no longer selected is forgotten', () => {
  const first = nextWorkTimes(undefined, { nodes: [], applied: 'new' }, undefined, 0)
  const working = nextWorkTimes(first, { nodes: [{ name: 'n1', status: 'in_progress' }], applied: 'new' }, undefined, 1)
  expect(working.sinceMs.size).toBe(1)
  expect(nextWorkTimes(working, { nodes: [], applied: 'new' }, undefined, 2).sinceMs.size).toBe(0)
})

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
