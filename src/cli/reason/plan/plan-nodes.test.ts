import { expect, test } from 'vitest'
import { pod, specOf, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import { journalKey, statusKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { readNodeEvents } from '../../fleet/fleet-view/node-detail.ts'
import { slimNode } from '../../fleet/fleet-view/project.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { planNode } from './plan-node.ts'
import { likenessOf, nodePlanner } from './plan-nodes.ts'

const unread = unknown('not read')

/** A rollout of four hosts, in the middle of it. */
async function rollout() {
  const scene = startScene({
    nodes: ['host1', 'host2', 'host3', 'host4'].map((name) => ({ name, pods: name === 'host3' ? [pod('shop')] : [] })),
    skyhooks: { s: {}, t: { priority: 300 } },
  })
  const complete = (): number =>
    [1, 2, 3, 4].filter((at) => scene.annotation(`node${at}`, statusKey('s')) === 'complete').length
  await scene.until(() => complete() === 2, 'half of it')
  const { transport, simulation } = scene
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock: simulation.clock, nodeOf: slimNode })
  return { scene, fleet, eventsOf: await readNodeEvents(transport) }
}

test('nodes are planned alike exactly where each by itself has the same plan', async () => {
  const { fleet, eventsOf } = await rollout()
  const skyhooks = valueOr(fleet.skyhooks, [])
  const before = skyhooks.find(({ metadata }) => metadata.name === 's')
  if (before === undefined) throw new Error('there is no Skyhook')
  const packages = { p0a: { version: '1.1.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } } } as const
  const after: Skyhook = { ...before, spec: specOf({ packages }) }
  const fleets = {
    before: fleet,
    after: { ...fleet, skyhooks: known([after, ...skyhooks.filter((s) => s !== before)]) },
  }
  const edits = [{ name: 's', before, after }]
  const planOf = nodePlanner(fleets, edits)
  for (const node of valueOr(fleet.nodes, [])) {
    const detail = { pods: unread, budgets: unread, events: eventsOf(node.metadata.name) }
    expect(planOf(node, detail)).toEqual(planNode(fleets, edits, { node, detail }))
  }
})

const node = (name: string, annotations: Record<string, string> = {}, labels = {}): KubernetesNode => ({
  metadata: {
    name,
    uid: `uid-${name}`,
    resourceVersion: name,
    annotations,
    labels: { 'kubernetes.io/hostname': name, ...labels },
  },
  spec: { taints: [] },
  status: { nodeInfo: { bootID: `boot-${name}` }, conditions: [{ type: 'Ready', status: 'True' }] },
})
const fleet = {
  skyhooks: known([{ metadata: { name: 's' }, spec: { nodeSelectors: { matchLabels: { pool: 'a' } } } }]),
  slots: known([{ holder: 'n9' }]),
} as unknown as FleetView<KubernetesNode>
const likeness = (one: KubernetesNode): string | undefined =>
  likenessOf({ before: fleet, after: fleet }, { node: one, detail: { events: unread } })
const reported = (name: string, rev: number, applied = 'x') => ({
  [journalKey('s')]: JSON.stringify({ v: 1, rev, applied, nodeUID: `uid-${name}` }),
  [statusKey('s')]: 'complete',
})

test('names, identities, times and labels that nothing asks for do not tell nodes apart', () => {
  for (const [one, other] of [
    ['n1', 'n2'],
    ['n1.example.com', 'n2.example.com'],
  ] as const)
    expect(likeness(node(one, reported(one, 3)))).toBe(likeness(node(other, reported(other, 9), { zone: 'b' })))
})

test('a name inside of another word is not a name', () => {
  expect(likeness(node('n1', reported('n1', 3, 'n1-x')))).not.toBe(likeness(node('n2', reported('n2', 3, 'n2-x'))))
})

test.each<[string, KubernetesNode]>([
  ['a label of a selector', node('n2', reported('n2', 3), { pool: 'a' })],
  ['other work', node('n2', reported('n2', 3, 'y'))],
  ['the uid of another Node', node('n2', reported('n1', 3))],
  ['a label of ours', node('n2', reported('n2', 3), { 'skyhook.nvidia.com/ignore': 'true' })],
  ['a label of the control plane', node('n2', reported('n2', 3), { 'node-role.kubernetes.io/control-plane': '' })],
  ['a cordon', { ...node('n2', reported('n2', 3)), spec: { taints: [], unschedulable: true } }],
  ['a taint', { ...node('n2', reported('n2', 3)), spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }],
])('%s tells nodes apart', (_, other) => {
  expect(likeness(other)).not.toBe(likeness(node('n1', reported('n1', 3))))
})

test.each<[string, KubernetesNode]>([
  ['with a slot', node('n9')],
  ['with our cordon', node('n1', { 'skyhook.nvidia.com/cordon_s': 'true' })],
  ['at work', node('n1', { [statusKey('s')]: 'in_progress' })],
])('a node %s is like no other', (_, one) => {
  expect(likeness(one)).toBeUndefined()
})
