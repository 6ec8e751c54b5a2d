import { describe, expect, test } from 'vitest'
import type { Ledger } from '../lease/ledger.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import { countsOf, nodeReporting, skyhookWith, spec } from '../../test/kit/objects/census-objects.ts'

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
