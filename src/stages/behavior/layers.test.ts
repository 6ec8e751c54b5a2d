/** Layers are fetched by nodes that are next, and by those that hold a slot. */
import { beforeEach, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import type { Action } from '../model/plan.ts'

const rebooting: Record<string, PackageSpec> = { a: { ...pkg('1.0.0'), interrupt: { type: 'reboot' } } }
const image = `${pkg('1.0.0').image}:1.0.0`

let node: NodeSimulator
beforeEach(() => {
  node = new NodeSimulator()
  node.distantSkyhooks.add('s')
})

const actions = (): Action['do'][] => (node.lastPlan?.actions ?? []).map(({ do: what }) => what)

test('a node whose turn is far waits in the line with nothing but a manifest', () => {
  node.areSlotsGranted = false
  node.apply('s', { packages: rebooting })
  node.settleFor(30_000)
  expect([node.reason(), node.fetchedImages, node.lastPlan?.slotRequests]).toEqual([
    'WaitingForSlot',
    [],
    new Set(['s']),
  ])
})

test('a node whose turn is far says at once that an image does not exist', () => {
  node.images.set(image, 'no such tag')
  node.apply('s', { packages: rebooting })
  node.settle()
  expect([node.reason(), actions()]).toEqual(['ImagePull', []])
})

test('a node whose turn is far says at once that a reference is missing', () => {
  node.missingReferences.add('A')
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }]
  node.apply('s', { packages: { a: { ...pkg('1.0.0'), env } } })
  node.settle()
  expect([node.reason(), node.fetchedImages, node.slots]).toEqual(['ReferenceMissing', [], []])
})

test('a node whose turn comes near fetches layers before it asks again, and keeps its place in the line', () => {
  node.areSlotsGranted = false
  node.apply('s', { packages: rebooting })
  node.settle()
  node.areSlotsGranted = true
  node.distantSkyhooks.clear()
  node.slotDenials.set('s', { message: 'full', nextRequestAtMs: 0, sinceMs: 0 })
  node.step(() => [])
  expect([actions(), node.lastPlan?.slotRequests, node.slots]).toEqual([['prepare'], new Set(['s']), []])
  node.settleFor(20_000)
  expect([node.fetchedImages, node.status()]).toEqual([[image], 'complete'])
})

test.each(['unknown', 'protected'])(
  'a node in line keeps its place while it fetches layers of one package, and %s pods hold up the interrupt of another',
  (pods) => {
    const labels = { critical: 'true' }
    if (pods === 'protected')
      node.pods = [{ metadata: { name: 'job', namespace: 'apps', uid: 'job', resourceVersion: '1', labels } }]
    else node.arePodsUnknown = true
    const spec = { podNonInterruptLabels: { matchLabels: labels }, drain: { cordon: 'late' } } as const
    node.areSlotsGranted = false
    node.distantSkyhooks.clear()
    node.apply('s', { ...spec, packages: rebooting })
    node.settle()
    node.areLayersSlow = true
    node.apply('s', { ...spec, packages: { ...rebooting, b: { ...pkg('2.0.0'), image: 'r/other' } } })
    node.settle()
    expect([node.fetchedImages, node.lastPlan?.slotRequests, node.slots]).toEqual([[image], new Set(['s']), []])
  },
)

test('a node in line that fetches layers still says that it waits for others', () => {
  node.areSlotsGranted = false
  node.apply('s', { packages: rebooting })
  node.settle()
  node.distantSkyhooks.clear()
  node.step(() => [])
  expect([actions(), node.lastPlan?.reasons.get('s')?.reason]).toEqual([['prepare'], 'WaitingForSlot'])
})

test('a slot that is granted before the layers are there is kept in service until they are', () => {
  node.areLayersSlow = true
  node.apply('s', { packages: rebooting })
  node.settle()
  expect(node.slots.map(({ phase }) => phase)).toEqual(['preparing'])
  expect([node.node.spec?.unschedulable ?? false, node.executedSteps, node.reason()]).toEqual([false, [], 'Preparing'])
  node.areLayersSlow = false
  node.settleFor(20_000)
  expect([node.fetchedImages, node.executedInterrupts, node.status()]).toEqual([[image], ['reboot'], 'complete'])
})

test('a slot under which layers take long is renewed', () => {
  node.areLayersSlow = true
  node.apply('s', { packages: rebooting })
  node.settle()
  const [granted] = node.slots
  node.settleFor(60_000)
  expect(node.slots.map(({ renewedAtMs }) => renewedAtMs - (granted?.renewedAtMs ?? 0))).toEqual([60_000])
})

test('a node gives its slot back if layers are not a package, and takes no other slot before it has the layers', () => {
  node.brokenLayers.add(image)
  node.apply('s', { packages: rebooting })
  let requests = 0
  for (let round = 0; round < 200; round++) {
    node.step()
    if (actions().includes('acquireSlot')) requests++
    node.nowMs += 1_000
  }
  expect([requests, node.slots, node.reason()]).toEqual([1, [], 'InvalidPackage'])
  expect(node.node.spec?.unschedulable ?? false).toBe(false)
  node.brokenLayers.clear()
  node.settleFor(60_000)
  expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
})

test('a Skyhook that is paused while layers are fetched under its slot gives the slot back', () => {
  node.areLayersSlow = true
  node.apply('s', { packages: rebooting })
  node.settle()
  expect(node.slots).toHaveLength(1)
  node.apply('s', { packages: rebooting }, { 'skyhook.nvidia.com/pause': 'true' })
  node.settle()
  expect([node.slots, node.fetchedImages, node.reason()]).toEqual([[], [], 'Paused'])
})

test('a node of the control plane takes no slot of the control plane for the time of a download', () => {
  node = new NodeSimulator({ 'node-role.kubernetes.io/control-plane': '' })
  node.distantSkyhooks.add('s')
  node.areLayersSlow = true
  node.apply('s', { packages: rebooting })
  const requests: Action[] = []
  while (node.step()) requests.push(...(node.lastPlan?.actions ?? []).filter(({ key }) => key.startsWith('slot/')))
  expect(requests).toMatchObject([{ do: 'acquireSlot', withControlPlane: false }])
  expect(node.slots.map(({ scope }) => scope)).toEqual(['skyhook'])
  node.areLayersSlow = false
  node.settleFor(30_000)
  expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
})

const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }

test('a node that joins the cluster waits for nobody, and fetches layers before it asks for its slot', () => {
  node.node = { ...node.node, spec: { ...node.node.spec, taints: [taint] } }
  node.areLayersSlow = true
  node.apply('s', { packages: rebooting })
  node.settle()
  expect([node.slots, actions(), node.lastPlan?.watchPods]).toEqual([[], ['prepare'], 'any'])
  node.areLayersSlow = false
  node.settleFor(30_000)
  expect(node.status()).toBe('complete')
})

test('a slot for joining nodes is given back if the node is in service before its layers are there', () => {
  node.distantSkyhooks.clear()
  node.node = { ...node.node, spec: { ...node.node.spec, taints: [taint] } }
  node.areSlotsConfirmed = false
  node.apply('s', { packages: rebooting })
  while (node.slots.length === 0) node.step()
  expect(node.slots.map(({ isBootstrap }) => isBootstrap)).toEqual([true])
  node.node = { ...node.node, spec: { ...node.node.spec, taints: [] } }
  node.areLayersSlow = true
  node.apply('s', { packages: { a: { ...rebooting['a'], image: 'another/image', version: '1.0.0' } } })
  node.settle()
  expect([node.slots, node.reason()]).toEqual([[], 'Preparing'])
})
