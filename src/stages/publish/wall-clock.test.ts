import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { idleSnapshot } from '../../../test/kit/objects/plan-builder.ts'
import { reasonKey, statusKey } from '../../schemas/annotations.ts'
import { undecidedPlan } from '../skyhook/undecided.ts'

const hourMs = 3_600_000
const packages = { a: { version: '1.0.0', image: 'r/a' } }
const sinceOn = (node: NodeSimulator): number =>
  Date.parse((JSON.parse(node.annotation('reason_s') ?? '{}') as { readonly since: string }).since)

test('times on the Node are those of the wall clock at the moment of their publication', () => {
  const node = new NodeSimulator()
  node.wallOffsetMs = hourMs
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages })
  node.settleFor(1_000)
  expect(Math.abs(sinceOn(node) - hourMs - node.nowMs)).toBeLessThan(2_000)
  const erroring = node.node.status?.conditions?.find(({ type }) => type.includes('Erroring'))
  expect(Math.abs(Date.parse(erroring?.lastTransitionTime ?? '') - hourMs - node.nowMs)).toBeLessThan(2_000)
})

test('a wall clock that jumps does not write a reason again that the Node shows', () => {
  const node = new NodeSimulator()
  node.areSlotsGranted = false
  node.apply('s', { packages })
  node.settleFor(5_000)
  const since = sinceOn(node)
  node.wallOffsetMs = -hourMs
  node.settleFor(5_000)
  expect(sinceOn(node)).toBe(since)
})

test('a wall clock that jumps does not write the reason of an undecided node again', () => {
  const failure = { reason: 'InternalError', message: 'm', sinceMs: 1_000 } as const
  const annotations = { [statusKey('s')]: 'waiting' }
  const metadata = { name: 'n', uid: 'node-uid', resourceVersion: '1', annotations }
  const snapshot = idleSnapshot({ node: { metadata } })
  const [publish] = undecidedPlan(snapshot, failure).actions
  const text = publish?.do === 'publish' ? publish.patch.annotations[reasonKey('s')] : undefined
  const shown = { ...metadata, annotations: { ...annotations, [reasonKey('s')]: text ?? '' } }
  const later = idleSnapshot({ node: { metadata: shown }, wallOffsetMs: hourMs })
  expect([text, undecidedPlan(later, failure).actions]).toEqual([expect.stringContaining('InternalError'), []])
})
