import { expect, test } from 'vitest'
import { createSample } from './sample-evidence.ts'
import { judgeSlotsKept } from './slots-kept.ts'
import { judgeSlotsTrue } from './slots-true.ts'

const node = 'node-1'

function working() {
  const sample = createSample(node)
  sample.skyhook(0, { interruptionBudget: { count: 1 } })
  sample.reads(9, node)
  sample.slot(8, node, 0)
  sample.node(10, node, { marked: true })
  sample.step(11, node)
  return sample
}

test('a node that gives its slot back while it has its cordon mark is found', () => {
  const sample = working()
  sample.release(20, node, 0)
  const { violations } = judgeSlotsKept(sample.evidence())
  expect(violations.map(({ text }) => text)).toEqual([expect.stringContaining('before the uncordon')])
})

test('a node that gives its slot back without a cordon in the middle of its work is found', () => {
  const sample = createSample(node)
  sample.skyhook(0, { interruptionBudget: { count: 1 } })
  sample.slot(8, node, 0)
  sample.reads(9, node)
  sample.step(11, node)
  sample.node(12, node, {})
  sample.release(20, node, 0)
  sample.node(30, node, { status: 'complete' })
  const { violations } = judgeSlotsKept(sample.evidence())
  expect(violations.map(({ text }) => text)).toEqual([expect.stringContaining('in the middle of its work')])
})

test('a node may give its slot back when it is complete', () => {
  const sample = working()
  sample.node(19, node, { status: 'complete' })
  sample.release(20, node, 0)
  expect(judgeSlotsKept(sample.evidence())).toEqual({ checked: 1, violations: [] })
})

test('a node may give its slot back when all its work is done, also if it waits for the next spec already', () => {
  const sample = working()
  sample.node(19, node, { status: 'waiting', stage: 'post-interrupt' })
  sample.release(20, node, 0)
  expect(judgeSlotsKept(sample.evidence())).toEqual({ checked: 1, violations: [] })
})

test('a node that waits with a package half installed has to keep its slot', () => {
  const sample = working()
  sample.node(19, node, { status: 'waiting', stage: 'apply' })
  sample.release(20, node, 0)
  expect(judgeSlotsKept(sample.evidence()).violations).toHaveLength(1)
})

/** It leaves half changed, gives its slot back, and goes out again once it is selected again. */
function comesBack(asks: boolean): ReturnType<typeof createSample> {
  const sample = createSample(node)
  const labels = { selected: 'true' }
  sample.skyhook(0, { interruptionBudget: { count: 1 }, nodeSelectors: { matchLabels: labels } })
  sample.slot(8, node, 0)
  sample.reads(9, node)
  sample.node(10, node, { marked: true, labels })
  sample.step(11, node)
  sample.node(15, node, {})
  sample.release(16, node, 0)
  sample.node(20, node, { labels })
  if (asks) {
    sample.slot(22, node, 0)
    sample.reads(24, node)
  }
  sample.step(26, node, 'apply_check')
  sample.node(40, node, { status: 'complete', labels })
  return sample
}

test('a node that leaves the selector gives its slot back, and asks for one when it is selected again', () => {
  expect(judgeSlotsKept(comesBack(true).evidence())).toEqual({ checked: 1, violations: [] })
})

test('a node that goes out again without asking should have kept its slot when it left the selector', () => {
  expect(judgeSlotsKept(comesBack(false).evidence()).violations).toHaveLength(1)
})

test('a slot that a person deleted was not given back, also if the agent deleted one of its name just before', () => {
  const sample = createSample(node)
  sample.skyhook(0, { interruptionBudget: { count: 1 } })
  sample.slot(6, node, 0)
  sample.release(7, node, 0)
  sample.reads(8.5, node)
  sample.slot(8, node, 0)
  sample.node(9, node, { marked: true })
  sample.step(9.1, node)
  sample.deletes(9.4, node)
  sample.collect(9.4, node, 0)
  expect(judgeSlotsKept(sample.evidence())).toEqual({ checked: 1, violations: [] })
})

test('a node may give its slot back when its host is done, though its Node could not say so yet', () => {
  const sample = createSample(node)
  sample.skyhook(0, { interruptionBudget: { count: 1 } })
  sample.slot(8, node, 0)
  sample.reads(9, node)
  sample.node(10, node, {})
  sample.step(11, node, 'post_interrupt_check')
  sample.skyhook(15, { interruptionBudget: { count: 1 } })
  sample.release(20, node, 0)
  sample.reads(29, node)
  sample.slot(28, node, 0)
  sample.step(30, node, 'config')
  sample.node(40, node, { status: 'complete' })
  expect(judgeSlotsKept(sample.evidence())).toEqual({ checked: 1, violations: [] })
})

test('a node may give back one of two slots', () => {
  const sample = working()
  sample.slot(12, node, 1)
  sample.release(20, node, 0)
  expect(judgeSlotsKept(sample.evidence()).violations).toEqual([])
})

test('a node that is out without a slot for more than a minute is found', () => {
  const sample = working()
  sample.release(20, node, 0)
  sample.node(81, node, { marked: true })
  const { violations } = judgeSlotsTrue(sample.evidence())
  expect(violations.map(({ text }) => text)).toEqual([expect.stringContaining('is out without a slot')])
})

test('a complete node that keeps its slot for more than a minute is found', () => {
  const sample = working()
  sample.node(19, node, { status: 'complete' })
  sample.node(80, node, { status: 'complete' })
  const { violations } = judgeSlotsTrue(sample.evidence())
  expect(violations.map(({ text }) => text)).toEqual([expect.stringContaining('is complete and keeps a slot')])
})

test('a node that has another slot a second after it lost one is not found', () => {
  const sample = working()
  sample.release(20, node, 0)
  sample.slot(21, node, 1)
  sample.node(90, node, { marked: true })
  expect(judgeSlotsTrue(sample.evidence()).violations).toEqual([])
})
