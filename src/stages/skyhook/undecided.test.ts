import { expect, test } from 'vitest'
import { idleSnapshot, viewOf } from '../../../test/kit/objects/plan-builder.ts'
import { newSkyhookRecord } from '../model/plan-builder.ts'
import { isOutdated, planOutdated } from './undecided.ts'

const elsewhere = viewOf({ nodeSelectors: { matchLabels: { pool: 'other' } } })
const record = newSkyhookRecord('s-uid')
const started = { ...record, lifecycle: { startedAtMs: 1_000, generation: 1 } }

test('a broken watch of the Skyhooks outdates only that the node has left', () => {
  const doubtful = { ...idleSnapshot(), areSkyhooksInDoubt: true }
  expect([isOutdated(doubtful, viewOf({})), isOutdated(doubtful, elsewhere)]).toEqual([false, true])
  expect(isOutdated(idleSnapshot(), elsewhere)).toBe(false)
})

test('a Skyhook that selects the node and was never decided on waits', () => {
  expect(planOutdated(idleSnapshot(), viewOf({}), undefined)).toMatchObject({
    status: 'waiting',
    complete: false,
    cordon: 'as-is',
    builder: { actions: [] },
  })
})

test('a Skyhook that does not select the node is unfinished only where its work has started', () => {
  const plans = [undefined, record, started].map((before) => planOutdated(idleSnapshot(), elsewhere, before))
  expect(plans.map((plan) => plan?.complete)).toEqual([undefined, true, false])
  expect(plans[2]?.builder.record).toEqual(started)
})
