import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { cordonMarks, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'

/** Nodes that leave the selector of their Skyhook half changed, and come back. */

const selecting = (packages: NonNullable<SkyhookSpec['packages']>): SkyhookSpec => ({
  nodeSelectors: { matchLabels: { pool: 'x' } },
  packages,
})

function label(node: NodeSimulator, labels: Readonly<Record<string, string>>): void {
  node.node = { ...node.node, metadata: { ...node.node.metadata, labels } }
}

/** It left during its first step, which has ended since. */
function leftNode(spec: SkyhookSpec, exitCode = 0, labels: Readonly<Record<string, string>> = {}): NodeSimulator {
  const node = new NodeSimulator({ ...labels, pool: 'x' })
  node.hangingPackages.add('a')
  node.apply('s', spec)
  node.settle()
  label(node, labels)
  node.settle()
  node.finishHanging('a', { outcome: 'exited', code: exitCode })
  node.settleFor(2_000)
  expect([node.slots, cordonMarks(node), node.executedSteps]).toEqual([[], [], ['a apply run.sh']])
  return node
}

test.each([
  ['whose step has passed', 0],
  ['whose step has failed', 1],
])('a node %s waits for a slot of the budget when its Skyhook selects it again', (_, exitCode) => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }), exitCode)
  node.areSlotsGranted = false
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.executedSteps, node.reason(), node.status()]).toEqual([
    [],
    ['a apply run.sh'],
    'WaitingForSlot',
    'waiting',
  ])
  node.areSlotsGranted = true
  node.settleFor(60_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that comes back does not start where the budget has fallen since its slot was granted', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.areSlotsConfirmed = false
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.executedSteps, node.reason()]).toEqual([['a apply run.sh'], 'WaitingForSlot'])
})

test('a node that comes back while another Skyhook comes first waits for that one', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.hangingPackages.add('b')
  node.apply('first', { priority: 1, packages: { b: pkg('1.0.0') } })
  node.settle()
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots.map(({ skyhook }) => skyhook), node.reason()]).toEqual([['first'], 'WaitingForPriority'])
})

test('a node that comes back to a paused Skyhook takes no slot', () => {
  const spec = selecting({ a: pkg('1.0.0') })
  const node = leftNode(spec)
  node.apply('s', spec, { 'skyhook.nvidia.com/pause': 'true' })
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.reason()]).toEqual([[], 'Paused'])
})

test('a node that comes back to another spec asks for a slot and starts from it', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.apply('s', selecting({ a: pkg('1.0.0', { image: 'r/other' }) }))
  node.areSlotsGranted = false
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.executedSteps, node.reason()]).toEqual([[], ['a apply run.sh'], 'WaitingForSlot'])
  node.areSlotsGranted = true
  node.settleFor(60_000)
  expect([node.status(), node.executedSteps.slice(0, 2)]).toEqual(['complete', ['a apply run.sh', 'a apply run.sh']])
})

test.each([['2.0.0'], ['0.9.0']])('a node that comes back to version %s asks for a slot and completes', (version) => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.apply('s', selecting({ a: pkg(version) }))
  node.areSlotsGranted = false
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.executedSteps, node.reason()]).toEqual([[], ['a apply run.sh'], 'WaitingForSlot'])
  node.areSlotsGranted = true
  node.settleFor(60_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that comes back without its package asks for a slot and uninstalls it', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0', { uninstall: { enabled: true } }) }))
  node.apply('s', selecting({ b: pkg('1.0.0') }))
  node.areSlotsGranted = false
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.executedSteps, node.reason()]).toEqual([[], ['a apply run.sh'], 'WaitingForSlot'])
  node.areSlotsGranted = true
  node.settleFor(60_000)
  expect([node.status(), node.slots, node.executedSteps.includes('a uninstall run.sh')]).toEqual(['complete', [], true])
})

test('a node of the control plane that comes back before its reboot waits for both slots', () => {
  const controlPlane = { 'node-role.kubernetes.io/control-plane': '' }
  const node = leftNode(selecting({ a: pkg('1.0.0', { interrupt: reboot }) }), 0, controlPlane)
  node.isControlPlaneFree = false
  label(node, { ...controlPlane, pool: 'x' })
  node.settleFor(60_000)
  expect([node.slots, node.executedInterrupts, node.reason()]).toEqual([[], [], 'WaitingForSlot'])
  node.isControlPlaneFree = true
  node.settleFor(60_000)
  expect([node.status(), node.slots, node.executedInterrupts]).toEqual(['complete', [], ['reboot']])
})

test('a node that comes back after its reboot is complete only once it is Ready', () => {
  const node = new NodeSimulator({ pool: 'x' }, { takesTime: true })
  node.apply('s', selecting({ a: pkg('1.0.0', { interrupt: reboot }) }))
  for (let round = 0; round < 100 && node.interrupting.size === 0; round++) {
    node.settle()
    if (node.interrupting.size === 0) node.finish()
  }
  label(node, {})
  node.powerCut()
  node.reportReady('False')
  node.settleFor(5_000)
  expect([node.slots, node.executedInterrupts]).toEqual([[], ['reboot']])
  label(node, { pool: 'x' })
  for (let round = 0; round < 10; round++) {
    node.settleFor(5_000)
    node.finish()
  }
  expect([node.status(), node.reason(), node.slots.length]).toEqual(['in_progress', 'NodeNotReady', 1])
  node.reportReady()
  node.settleFor(30_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that comes back before its slot has gone continues under it', () => {
  const node = new NodeSimulator({ pool: 'x' })
  node.hangingPackages.add('a')
  node.apply('s', selecting({ a: pkg('1.0.0', { interrupt: reboot }) }))
  node.settle()
  const leases = node.slots.map(({ lease }) => lease)
  label(node, {})
  node.settle()
  label(node, { pool: 'x' })
  node.areSlotsGranted = false
  node.finishHanging('a')
  node.settleFor(60_000)
  expect([leases.length, node.executedInterrupts, node.status(), node.slots]).toEqual([1, ['reboot'], 'complete', []])
})

test('a node that comes back to another version far from its turn waits in the line with nothing but a manifest', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.apply('s', selecting({ a: pkg('2.0.0') }))
  node.areSlotsGranted = false
  node.distantSkyhooks.add('s')
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.reason(), node.lastPlan?.slotRequests, node.fetchedImages]).toEqual([
    'WaitingForSlot',
    new Set(['s']),
    [`${pkg('1.0.0').image}:1.0.0`],
  ])
  node.areSlotsGranted = true
  node.settleFor(60_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that comes back to another version keeps its place in the line while it fetches layers', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.apply('s', selecting({ a: pkg('2.0.0') }))
  node.areLayersSlow = true
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.reason(), node.lastPlan?.slotRequests, node.slots]).toEqual(['Preparing', new Set(['s']), []])
})

test('a slot that a node gets when it comes back to another version is kept while its layers are fetched', () => {
  const node = leftNode(selecting({ a: pkg('1.0.0') }))
  node.apply('s', selecting({ a: pkg('2.0.0') }))
  node.areLayersSlow = true
  node.distantSkyhooks.add('s')
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect(node.slots.map(({ phase }) => phase)).toEqual(['preparing'])
  node.areLayersSlow = false
  node.settleFor(60_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that comes back to a serial Skyhook whose package waits for a new one completes', () => {
  const node = leftNode({ ...selecting({ a: pkg('1.0.0') }), serial: true })
  const packages = { a: pkg('2.0.0', { dependsOn: { b: '1.0.0' } }), b: pkg('1.0.0') }
  node.apply('s', { ...selecting(packages), serial: true })
  node.distantSkyhooks.add('s')
  label(node, { pool: 'x' })
  node.settleFor(60_000)
  expect([node.status(), node.reason(), node.slots]).toEqual(['complete', undefined, []])
})
