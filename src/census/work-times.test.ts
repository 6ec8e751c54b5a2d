import { expect, test } from 'vitest'
import type { NodeStatus } from '../schemas/skyhook.ts'
import type { Ledger } from '../lease/ledger.ts'
import { type WorkTimes, nextWorkTimes } from './work-times.ts'

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
