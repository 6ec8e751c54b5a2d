import { expect, test } from 'vitest'
import { labelKeys } from '../../lease/names.ts'
import type { Slot } from '../../lease/slot.ts'
import { known, unknown } from '../../stages/model/snapshot.ts'
import { type LaneHistory, lanesOf, withSlots } from './lanes.ts'

const startMs = Date.parse('2026-01-01T00:00:00Z')

function slot(holder: string, index: number, phase = 'working', uid = `${holder}-${index}`): Slot {
  const labels = { [labelKeys.name]: 's' }
  const metadata = { name: `s.slot-${index}`, uid, resourceVersion: '1', labels }
  return {
    name: metadata.name,
    uid,
    resourceVersion: '1',
    kind: Number.isFinite(index) ? 'slot' : 'unlimited',
    scope: 's',
    compartment: '',
    compartmentName: '',
    index,
    holder,
    nodeUid: holder,
    phase,
    generation: 1,
    epoch: undefined,
    bootId: '',
    lease: { metadata, spec: { holderIdentity: holder, acquireTime: '2026-01-01T00:00:00Z' } },
  }
}

function historyOf(...moments: readonly (readonly [seconds: number, slots: readonly Slot[]])[]): LaneHistory {
  return moments.reduce<LaneHistory>(
    (history, [seconds, slots]) => withSlots(history, known(slots), startMs + seconds * 1_000),
    new Map(),
  )
}

const shownOf = (history: LaneHistory, limit?: number) =>
  lanesOf(history, 's', limit).map(({ label, spans }) => ({
    label,
    spans: spans.map(({ node, fromMs, toMs, phases }) => [
      node,
      (fromMs - startMs) / 1_000,
      toMs === undefined ? 'now' : (toMs - startMs) / 1_000,
      phases.map(({ phase }) => phase).join(' '),
    ]),
  }))

test('a lane shows one node after the other, with its phases', () => {
  const history = historyOf(
    [5, [slot('n1', 0, 'draining')]],
    [9, [slot('n1', 0, 'working')]],
    [12, [slot('n2', 0)]],
    [20, []],
  )
  expect(shownOf(history)).toEqual([
    {
      label: 'slot 0',
      spans: [
        ['n1', 0, 12, 'draining working'],
        ['n2', 0, 20, 'working'],
      ],
    },
  ])
})

test('a slot of the budget that nobody holds is an empty lane', () => {
  expect(shownOf(historyOf([5, [slot('n1', 1)]]), 3)).toEqual([
    { label: 'slot 0', spans: [] },
    { label: 'slot 1', spans: [['n1', 0, 'now', 'working']] },
    { label: 'slot 2', spans: [] },
  ])
})

test('slots without a number take the first lane that is free', () => {
  const history = historyOf(
    [1, [slot('n1', Infinity), slot('n2', Infinity)]],
    [2, [slot('n2', Infinity)]],
    [3, [slot('n2', Infinity), slot('n3', Infinity)]],
  )
  expect(shownOf(history).map(({ label, spans }) => [label, ...spans.map(([node]) => node)])).toEqual([
    ['unlimited 0', 'n1', 'n3'],
    ['unlimited 1', 'n2'],
  ])
})

test('slots that cannot be read end nothing', () => {
  const before = historyOf([1, [slot('n1', 0)]])
  expect(withSlots(before, unknown('you may not read Leases'), startMs + 60_000)).toBe(before)
})

test('what ended more than an hour ago is forgotten', () => {
  const history = historyOf([1, [slot('n1', 0)]], [2, []], [3_700, [slot('n2', 0)]])
  expect(shownOf(history)[0]?.spans.map(([node]) => node)).toEqual(['n2'])
})

test('a budget without a limit does not make endless lanes', () => {
  const slots = Array.from({ length: 500 }, (_, index) => slot(`n${index}`, Infinity))
  expect(lanesOf(historyOf([1, slots]), 's', undefined).length).toBe(64)
})
