import { describe, expect, test } from 'vitest'
import type { Ledger } from '../lease/ledger.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import type { DampedCount } from './damped-count.ts'
import { countsOf, nodeReporting, skyhookWith, spec } from '../../test/support/census-objects.ts'

type Scenario = {
  skyhook?: Skyhook
  currentLedger?: Ledger
  matched?: DampedCount
  complete?: number
  nodes?: number
  waiters?: number
  agents?: number
  lastWriteMs?: number
  nowMs?: number
}

function plan(scenario: Scenario = {}): LedgerPlan {
  const { skyhook = skyhookWith(), nodes = 6, complete = 0, waiters = 0, agents = 6, nowMs = 100_000 } = scenario
  const all = Array.from({ length: nodes }, (_, at) =>
    nodeReporting(
      `n${at}`,
      at < complete ? {} : { status: 'waiting', ...(at < complete + waiters && { reason: ['WaitingForSlot', 'x'] }) },
    ),
  )
  const counts = countsOf(skyhook, all)
  const { currentLedger, matched, lastWriteMs } = scenario
  return planLedger({
    skyhook,
    counts,
    agents,
    currentLedger,
    matched,
    lastWriteMs,
    nowMs,
    wallMs: Date.UTC(2026, 10, 20, 14),
  })
}
const base = (): Ledger => plan().ledger

test('the ledger says what was counted, for which Skyhook, spec and selector', () => {
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

describe('is written', () => {
  const other = skyhookWith({ spec: { ...spec, nodeSelectors: { matchLabels: { 'kubernetes.io/hostname': 'n1' } } } })
  test.each<[string, Scenario, number]>([
    ['at once when there is none', {}, -Infinity],
    ['not when nothing changed', { currentLedger: base() }, Infinity],
    ['at once when a node went', { currentLedger: base(), nodes: 5, lastWriteMs: 99_999 }, -Infinity],
    ['not when a node came: first it has to stay', { currentLedger: base(), nodes: 7 }, Infinity],
    ['at once for another selector', { currentLedger: base(), skyhook: other, lastWriteMs: 99_999 }, -Infinity],
    ['at once for another generation', { currentLedger: { ...base(), generation: 2 } }, -Infinity],
    [
      'never over one of a later generation: what is seen here is old',
      { currentLedger: { ...base(), generation: 4 }, nodes: 2 },
      Infinity,
    ],
    [
      'at once over one of an earlier Skyhook of the name',
      { currentLedger: { ...base(), skyhookUID: 'x', generation: 9 } },
      -Infinity,
    ],
    ['with the first who waits', { currentLedger: base(), waiters: 1 }, -Infinity],
    [
      'at its pace when many wait',
      { currentLedger: { ...base(), waiters: 2 }, waiters: 4, lastWriteMs: 99_999 },
      99_999 + 2_000,
    ],
    [
      'slower among a thousand agents',
      { currentLedger: { ...base(), waiters: 2, agents: 1_000 }, waiters: 4, agents: 1_000, lastWriteMs: 99_999 },
      99_999 + 4_000,
    ],
    [
      'not for a few more of many',
      {
        currentLedger: { ...base(), waiters: 30, compartments: { '': { matched: 50, completed: 0 } } },
        nodes: 50,
        waiters: 35,
      },
      Infinity,
    ],
    [
      'with the last that completes',
      {
        currentLedger: { ...base(), compartments: { '': { matched: 50, completed: 49 } } },
        nodes: 50,
        complete: 50,
        lastWriteMs: 0,
      },
      2_000,
    ],
    [
      'not with one more of many that complete',
      { currentLedger: { ...base(), compartments: { '': { matched: 50, completed: 40 } } }, nodes: 50, complete: 41 },
      Infinity,
    ],
  ])('%s', (_, scenario, atMs) => {
    expect(plan(scenario).writeAtMs).toBe(atMs)
  })

  test('with more nodes once they have stayed, also by a census that takes over', () => {
    const first = plan({ currentLedger: base(), nodes: 9, nowMs: 0 })
    expect(first.ledger.compartments).toEqual({ '': { matched: 6, completed: 0 } })
    const later = plan({ currentLedger: base(), matched: first.matched, nodes: 9, nowMs: 30_000 })
    expect(later).toMatchObject({ ledger: { compartments: { '': { matched: 9 } } }, writeAtMs: -Infinity })
    expect(plan({ currentLedger: base(), nodes: 9, nowMs: 30_000 }).ledger.compartments).toEqual({
      '': { matched: 6, completed: 0 },
    })
  })

  test('what was remembered of another selector does not count', () => {
    const pendingRise = plan({ currentLedger: base(), nodes: 9, nowMs: 0 }).matched
    expect(
      plan({ currentLedger: base(), skyhook: other, matched: pendingRise, nodes: 9, nowMs: 40_000 }).ledger
        .compartments,
    ).toEqual({
      '': { matched: 1, completed: 0 },
    })
  })
})
