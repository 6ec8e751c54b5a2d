import { expect, test } from 'vitest'
import { createSample, skyhook } from '../chaos/verdict/sample-evidence.ts'
import { budget } from './budget.ts'
import { onRecord } from './recorded.ts'

const judgeBudget = onRecord(budget)

const [one, other] = ['node-1', 'node-2'] as const

/** The first node is out from 10 to 30 s. */
function sampleWith(budget: object) {
  const sample = createSample(one, other)
  sample.skyhook(0, { interruptionBudget: budget })
  sample.reads(9, one)
  sample.node(10, one, { marked: true })
  sample.step(11, one)
  sample.node(30, one, { status: 'complete' })
  return sample
}

test('a node that is admitted while another fills the budget violates it', () => {
  const sample = sampleWith({ count: 1 })
  sample.reads(19, other)
  sample.node(20, other, { marked: true })
  sample.node(40, other, { status: 'complete' })
  const { violations, checked } = judgeBudget(sample.evidence())
  expect(checked).toBe(2)
  expect(violations.map(({ text }) => text)).toEqual([expect.stringContaining('node-2 went out')])
})

test('two nodes may be out with a budget of two', () => {
  const sample = sampleWith({ count: 2 })
  sample.reads(19, other)
  sample.node(20, other, { marked: true })
  expect(judgeBudget(sample.evidence()).violations).toEqual([])
})

test('a node that is admitted after the other is complete violates nothing', () => {
  const sample = sampleWith({ count: 1 })
  sample.reads(32, other)
  sample.node(33, other, { marked: true })
  expect(judgeBudget(sample.evidence()).violations).toEqual([])
})

test('a budget that falls while two nodes are out is not violated by them', () => {
  const sample = sampleWith({ count: 2 })
  sample.reads(14, other)
  sample.node(15, other, { marked: true })
  sample.skyhook(18, { interruptionBudget: { count: 1 } })
  sample.node(40, other, { status: 'complete' })
  expect(judgeBudget(sample.evidence()).violations).toEqual([])
})

test('a step without a cordon puts a node out as well', () => {
  const sample = sampleWith({ count: 1 })
  sample.reads(19, other)
  sample.step(20, other)
  expect(judgeBudget(sample.evidence()).violations).toHaveLength(1)
})

test('a node whose slot a person has deleted does not count until it has another', () => {
  const sample = sampleWith({ count: 1 })
  sample.deletes(15, one)
  sample.reads(19, other)
  sample.node(20, other, { marked: true })
  expect(judgeBudget(sample.evidence()).violations).toEqual([])
})

/** The slot of the first node is deleted at 15 s, and its agent writes another one at 20 s. */
function sampleOfDeletedSlot() {
  const sample = sampleWith({ count: 1 })
  const lists = (seconds: number): void =>
    sample.request(seconds, other, {
      verb: 'list',
      resource: 'leases',
      uri: `/leases?labelSelector=skyhook.nvidia.com%2Fname%3D${skyhook}`,
    })
  sample.deletes(15, one)
  sample.slot(20, one, 1)
  return { sample, lists }
}

test('a node that listed the slots before another was written again violates nothing', () => {
  const { sample, lists } = sampleOfDeletedSlot()
  lists(18)
  sample.reads(24, other)
  sample.node(25, other, { marked: true })
  expect(judgeBudget(sample.evidence()).violations).toEqual([])
})

test('a node that listed the slots after another was written again violates the budget', () => {
  const { sample, lists } = sampleOfDeletedSlot()
  lists(18)
  lists(23)
  sample.reads(24, other)
  sample.node(25, other, { marked: true })
  expect(judgeBudget(sample.evidence()).violations).toHaveLength(1)
})
