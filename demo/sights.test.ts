import { expect, test } from 'vitest'
import { emptyView, moments, type Moment, type Version } from '../test/kit/cluster/moments.ts'
import { statusKey } from '../src/schemas/annotations.ts'
import { sightsOf, type Boot } from './sights.ts'
import { summaryOf } from './summary.ts'

const nodes = ['node-1', 'node-2']
let resourceVersion = 0
const at = (atMs: number, kind: Version['kind'], object: object, type: Version['type'] = 'MODIFIED'): Version =>
  ({ kind, type, object, atMs, resourceVersion: ++resourceVersion }) as Version

type NodeFacts = { readonly cordoned?: true; readonly bootId?: string; readonly joining?: true; readonly done?: true }
const node = (name: string, facts: NodeFacts = {}): object => ({
  metadata: { name, annotations: facts.done ? { [statusKey('demo')]: 'complete' } : {} },
  spec: {
    ...(facts.cordoned && { unschedulable: true }),
    ...(facts.joining && { taints: [{ key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }] }),
  },
  status: { nodeInfo: { bootID: facts.bootId ?? 'one' }, conditions: [{ type: 'Ready', status: 'True' }] },
})
const pod = (nodeName: string): object => ({
  metadata: { name: `cart-${nodeName}`, namespace: 'shop' },
  spec: { nodeName },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

const rollout = { skyhook: 'demo', budget: 1, startedMs: 10, endedMs: 100 }
const both = [at(0, 'nodes', node('node-1')), at(0, 'nodes', node('node-2'))]
const before: readonly Boot[] = nodes.map((name) => ({ atMs: 1, node: name, bootId: 'one' }))
const of = (...versions: readonly Version[]): Moment[] => [...moments(emptyView(), [...both, ...versions])]
const statesOf = (versions: readonly Version[], boots: readonly Boot[] = []): string[] =>
  sightsOf(of(...versions), [...before, ...boots], rollout, nodes).map(
    ({ atMs, states, out }) => `${atMs}: ${states.join(' ')}, ${out} out`,
  )

test('the first sight is as of the start of the rollout', () => {
  expect(statesOf([])).toEqual(['10: waiting waiting, 0 out'])
})

test('a cordoned node is drained once no ordinary pod is on it', () => {
  const versions = [
    at(20, 'pods', pod('node-1'), 'ADDED'),
    at(30, 'nodes', node('node-1', { cordoned: true })),
    at(40, 'pods', pod('node-1'), 'DELETED'),
    at(50, 'nodes', node('node-1', { done: true })),
  ]
  expect(statesOf(versions).slice(1)).toEqual([
    '20: waiting waiting, 0 out',
    '30: cordoned waiting, 1 out',
    '40: drained waiting, 1 out',
    '50: complete waiting, 0 out',
  ])
})

test('a host reboots from when it is off until its Node has the boot id of the host', () => {
  const boots = [
    { atMs: 20, node: 'node-2', bootId: undefined },
    { atMs: 30, node: 'node-2', bootId: 'two' },
  ]
  expect(statesOf([at(40, 'nodes', node('node-2', { bootId: 'two' }))], boots).slice(1)).toEqual([
    '20: waiting rebooting, 1 out',
    '30: waiting rebooting, 1 out',
    '40: waiting waiting, 0 out',
  ])
})

test('a node that has not joined is not out of service', () => {
  const versions = [at(20, 'nodes', node('node-1', { cordoned: true, joining: true }))]
  expect(statesOf(versions).at(-1)).toBe('20: drained waiting, 0 out')
})

test('watches that arrive in another order than the changes leave the last change last', () => {
  const earlier = at(60, 'nodes', node('node-1', { cordoned: true }))
  const later = at(50, 'nodes', node('node-1', { done: true }))
  expect(statesOf([later, earlier]).at(-1)).toBe('60: complete waiting, 0 out')
})

test('what comes after the end of the rollout is not of it', () => {
  expect(statesOf([at(101, 'nodes', node('node-1', { cordoned: true }))])).toHaveLength(1)
})

test('the summary has five lines of what was seen', () => {
  const boots = [
    ...before,
    { atMs: 30, node: 'node-2', bootId: undefined },
    { atMs: 40, node: 'node-2', bootId: 'two' },
  ]
  const views = of(
    at(20, 'pods', pod('node-1'), 'ADDED'),
    at(30, 'nodes', node('node-2', { cordoned: true })),
    at(60, 'nodes', node('node-2', { bootId: 'two', done: true })),
    at(70, 'nodes', node('node-1', { cordoned: true })),
  )
  const films = [{ rollout, sights: sightsOf(views, boots, rollout, nodes) }]
  const lines = summaryOf({ films, boots, nodes, views, files: { expected: 4, found: 3 } })
  expect(lines).toEqual([
    '1 of 2 nodes complete in 1 rollout, in 0.1 s',
    'at most 1 node out of service at once, of a budget of 1',
    '1 reboot by the boot ids of the hosts: node-1 0, node-2 1',
    '1 pod of the shop in turn, never fewer than 1 of 1 Ready',
    '3 of 4 files on the hosts; left: 0 slots held, 1 node cordoned',
  ])
})
