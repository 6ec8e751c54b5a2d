/** Writes to Nodes, and Events about them, on a real API server: what one PATCH can carry, and what users then see. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { startEventRecorder } from '../../src/kube/events.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { patchNode, type NodePatchRequest, type NodeWriteOutcome } from '../../src/kube/node-writer.ts'
import type { NodeCondition, Taint } from '../../src/schemas/kubernetes.ts'
import type { ApiServer } from './api-server.ts'
import { borrowChartCluster } from './shared-cluster.ts'

type Node = KubeObject & {
  readonly spec: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] }
  readonly status: { readonly conditions?: readonly NodeCondition[] }
}

const ready: NodeCondition = {
  type: 'Ready',
  status: 'True',
  reason: 'KubeletReady',
  message: 'ok',
  lastTransitionTime: '2026-01-01T00:00:00Z',
}
const ours: NodeCondition = {
  ...ready,
  type: 'skyhook.nvidia.com/demo/NotReady',
  reason: 'Incomplete',
  message: 'Skyhook demo Ready',
}

let cluster: ApiServer
let number = 0
let name: string

beforeAll(async () => {
  cluster = (await borrowChartCluster()).server
})
afterAll(async () => await cluster?.stop())

beforeEach(async () => {
  name = `n${++number}`
  await cluster.admin.json('POST', '/api/v1/nodes', {
    body: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations: { theirs: '1', old: '1' }, labels: { theirs: '1' } },
      spec: { taints: [{ key: 'theirs', effect: 'NoSchedule' }] },
      status: { conditions: [ready] },
    },
  })
})

const read = async (): Promise<Node> => await cluster.admin.json<Node>('GET', `/api/v1/nodes/${name}`)
const write = async (patch: Omit<NodePatchRequest, 'resourceVersion'>): Promise<NodeWriteOutcome> =>
  await patchNode(cluster.admin, name, { resourceVersion: (await read()).metadata.resourceVersion, ...patch })

describe('one PATCH of the status', () => {
  test('one PATCH of the status writes annotations, labels and conditions and leaves everything else', async () => {
    const before = await read()
    const written = await write({
      annotations: { 'skyhook.nvidia.com/status_demo': 'in_progress', old: null },
      labels: { 'skyhook.nvidia.com/status_demo': 'in_progress' },
      conditions: [ours],
    })
    const after = await read()
    const { managedFields: _, ...metadata } = after.metadata as typeof after.metadata & { managedFields?: unknown }
    expect(written).toEqual({ outcome: 'written', metadata })
    expect(after.metadata.annotations).toEqual({ theirs: '1', 'skyhook.nvidia.com/status_demo': 'in_progress' })
    expect(after.metadata.labels).toEqual({ theirs: '1', 'skyhook.nvidia.com/status_demo': 'in_progress' })
    expect(after.status.conditions).toHaveLength(2)
    expect(after.status.conditions).toEqual(
      expect.arrayContaining([expect.objectContaining(ready), expect.objectContaining(ours)]),
    )
    expect(after.spec).toEqual(before.spec)
  })

  test('one PATCH of the status replaces a condition by its type and removes it again', async () => {
    await write({ conditions: [ours] })
    await write({ conditions: [{ ...ours, status: 'False', reason: 'Complete' }] })
    expect((await read()).status.conditions).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: ours.type, reason: 'Complete' })]),
    )
    await write({ removedConditions: [ours.type] })
    expect((await read()).status.conditions).toEqual([expect.objectContaining(ready)])
  })
})

describe('one PATCH of the node', () => {
  test('one PATCH of the node writes a cordon and its marks', async () => {
    await write({
      annotations: { 'skyhook.nvidia.com/cordon_demo': 'true', 'skyhook.nvidia.com/cordoned-before': 'false' },
      unschedulable: true,
    })
    const after = await read()
    expect(after.spec.unschedulable).toBe(true)
    expect(after.metadata.annotations).toMatchObject({ 'skyhook.nvidia.com/cordon_demo': 'true', theirs: '1' })
    // The server adds the taint of an unschedulable node by itself.
    expect(after.spec.taints?.map(({ key }) => key).toSorted()).toContain('theirs')
  })

  test('an uncordon removes the marks in the same PATCH', async () => {
    await write({ annotations: { 'skyhook.nvidia.com/cordon_demo': 'true' }, unschedulable: true })
    await write({ annotations: { 'skyhook.nvidia.com/cordon_demo': null }, unschedulable: false })
    const after = await read()
    expect(after.spec.unschedulable ?? false).toBe(false)
    expect(after.metadata.annotations).toEqual({ theirs: '1', old: '1' })
  })

  test('a PATCH replaces the taints as a whole', async () => {
    await write({ taints: [{ key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }] })
    expect((await read()).spec.taints?.map(({ key }) => key)).toEqual(['skyhook.nvidia.com'])
    await write({ taints: [] })
    expect((await read()).spec.taints ?? []).toEqual([])
  })
})

test.each<[string, Omit<NodePatchRequest, 'resourceVersion'>]>([
  ['status', { annotations: { ours: '1' }, conditions: [ours] }],
  ['node', { annotations: { ours: '1' }, unschedulable: true }],
])('a PATCH of the %s after another write is a conflict and writes nothing', async (_, patch) => {
  const { resourceVersion } = (await read()).metadata
  await cluster.kubectl('annotate', 'node', name, 'heartbeat=1')
  expect(await patchNode(cluster.admin, name, { resourceVersion, ...patch })).toMatchObject({ outcome: 'conflict' })
  expect((await read()).metadata.annotations).not.toHaveProperty('ours')
})

test('a PATCH without a change keeps the resourceVersion', async () => {
  const { resourceVersion } = (await read()).metadata
  expect(await write({ annotations: { theirs: '1' } })).toMatchObject({
    outcome: 'written',
    metadata: { resourceVersion },
  })
})

test('a PATCH of a deleted Node reports that it is not found', async () => {
  const { resourceVersion } = (await read()).metadata
  await cluster.kubectl('delete', 'node', name)
  expect(await patchNode(cluster.admin, name, { resourceVersion, unschedulable: true })).toMatchObject({
    outcome: 'gone',
  })
})

test('kubectl get events and kubectl describe node show Events with their count', async () => {
  const abort = new AbortController()
  const events = startEventRecorder(cluster.admin, {
    clock: systemClock,
    random: systemRandom,
    component: 'skyhookd',
    host: name,
    signal: abort.signal,
    timing: { countDelayMs: 50 },
  })
  const { uid } = (await read()).metadata
  const fact = {
    regarding: { apiVersion: 'v1', kind: 'Node', name, uid },
    type: 'Warning',
    reason: 'StepFailed',
    message: 'apply.sh exited with 3',
  } as const
  const columns = 'jsonpath={range .items[*]}{.reason} {.count}{"\\n"}{end}'
  const shownEvents = async (): Promise<string> =>
    await cluster.kubectl('get', 'events', '-n', 'default', '-o', columns)
  events.record(fact)
  await vi.waitFor(async () => expect(await shownEvents()).toContain('StepFailed 1'), { timeout: 10_000, interval: 50 })
  events.record(fact)
  events.record(fact)
  await vi.waitFor(async () => expect(await shownEvents()).toContain('StepFailed 3'), { timeout: 10_000, interval: 50 })
  expect(await cluster.kubectl('describe', 'node', name)).toMatch(
    /Warning\s+StepFailed\s+.*x3.*skyhookd.*apply\.sh exited with 3/,
  )
  abort.abort()
})
