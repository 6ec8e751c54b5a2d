import { describe, expect, test } from 'vitest'
import type { Ledger } from '../lease/ledger.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import type { Matched } from './damped-count.ts'
import { counted, nodeSaying, skyhookWith, spec } from '../../test/support/census-objects.ts'

type Situation = {
  skyhook?: Skyhook
  shown?: Ledger
  matched?: Matched
  complete?: number
  nodes?: number
  waiters?: number
  agents?: number
  lastWriteMs?: number
  nowMs?: number
}

function plan(situation: Situation = {}): LedgerPlan {
  const { skyhook = skyhookWith(), nodes = 6, complete = 0, waiters = 0, agents = 6, nowMs = 100_000 } = situation
  const all = Array.from({ length: nodes }, (_, at) =>
    nodeSaying(`n${at}`, at < complete ? {} : { status: 'waiting', ...(at < complete + waiters && { reason: ['WaitingForSlot', 'x'] }) }),
  )
  const counts = counted(skyhook, all)
  const { shown, matched, lastWriteMs } = situation
  return planLedger({ skyhook, counts, agents, shown, matched, lastWriteMs, nowMs, wallMs: Date.UTC(2026, 10, 20, 14) })
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
  test.each<[string, Situation, number]>([
    ['at once when there is none', {}, -Infinity],
    ['not when nothing changed', { shown: base() }, Infinity],
    ['at once when a node went', { shown: base(), nodes: 5, lastWriteMs: 99_999 }, -Infinity],
    ['not when a node came: first it has to stay', { shown: base(), nodes: 7 }, Infinity],
    ['at once for another selector', { shown: base(), skyhook: other, lastWriteMs: 99_999 }, -Infinity],
    ['at once for another generation', { shown: { ...base(), generation: 2 } }, -Infinity],
    ['never over one of a later generation: what is seen here is old', { shown: { ...base(), generation: 4 }, nodes: 2 }, Infinity],
    ['at once over one of an earlier Skyhook of the name', { shown: { ...base(), skyhookUID: 'x', generation: 9 } }, -Infinity],
    ['with the first who waits', { shown: base(), waiters: 1 }, -Infinity],
    ['at its pace when many wait', { shown: { ...base(), waiters: 2 }, waiters: 4, lastWriteMs: 99_999 }, 99_999 + 2_000],
    [
      'slower among a thousand agents',
      { shown: { ...base(), waiters: 2, agents: 1_000 }, waiters: 4, agents: 1_000, lastWriteMs: 99_999 },
      99_999 + 4_000,
    ],
    [
      'not for a few more of many',
      { shown: { ...base(), waiters: 30, compartments: { '': { matched: 50, completed: 0 } } }, nodes: 50, waiters: 35 },
      Infinity,
    ],
    [
      'with the last that completes',
      { shown: { ...base(), compartments: { '': { matched: 50, completed: 49 } } }, nodes: 50, complete: 50, lastWriteMs: 0 },
      2_000,
    ],
    [
      'not with one more of many that complete',
      { shown: { ...base(), compartments: { '': { matched: 50, completed: 40 } } }, nodes: 50, complete: 41 },
      Infinity,
    ],
  ])('%s', (_, situation, atMs) => {
    expect(plan(situation).writeAtMs).toBe(atMs)
  })

  test('with more nodes once they have stayed, also by a census that takes over', () => {
    const first = plan({ shown: base(), nodes: 9, nowMs: 0 })
    expect(first.ledger.compartments).toEqual({ '': { matched: 6, completed: 0 } })
    const later = plan({ shown: base(), matched: first.matched, nodes: 9, nowMs: 30_000 })
    expect(later).toMatchObject({ ledger: { compartments: { '': { matched: 9 } } }, writeAtMs: -Infinity })
    expect(plan({ shown: base(), nodes: 9, nowMs: 30_000 }).ledger.compartments).toEqual({ '': { matched: 6, completed: 0 } })
  })

  test('what was remembered of another selector does not count', () => {
    const rising = plan({ shown: base(), nodes: 9, nowMs: 0 }).matched
    expect(plan({ shown: base(), skyhook: other, matched: rising, nodes: 9, nowMs: 40_000 }).ledger.compartments).toEqual({
      '': { matched: 1, completed: 0 },
    })
  })
})
