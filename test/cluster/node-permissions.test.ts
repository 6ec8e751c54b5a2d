/** What an agent's token may change on Nodes, on a real API server with the chart's roles and policies. */
import { describe, expect, test } from 'vitest'
import { withNodeCount } from '../../src/daemon/slots/node-count.ts'
import { patchNode } from '../../src/kube/node-writer.ts'
import type { KubeObject, ObjectList } from '../../src/kube/objects.ts'
import type { Taint } from '../../src/schemas/kubernetes.ts'
import { allowed, merge, nodes, refused, strategic, useAgents } from './agents.ts'

const agents = useAgents()

describe('an agent on its own Node', () => {
  const own = `${nodes}/node-a`
  const condition = (type: string) => ({
    status: { conditions: [{ type, status: 'True', reason: 'Incomplete', message: 'm' }] },
  })

  test.each<[string, string, unknown, string?]>([
    ['cordons and uncordons', own, { spec: { unschedulable: true } }],
    ['uncordons', own, { spec: { unschedulable: null } }],
    [
      'publishes its state',
      own,
      {
        metadata: {
          annotations: { 'skyhook.nvidia.com/nodeState_demo': '{}', 'skyhook.nvidia.com/reason_demo': '{}' },
        },
      },
    ],
    [
      'removes an annotation of its own',
      own,
      { metadata: { annotations: { 'skyhook.nvidia.com/reason_demo': null } } },
    ],
    [
      'keeps autoscalers off',
      own,
      {
        metadata: {
          annotations: {
            'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true',
            'karpenter.sh/do-not-disrupt': 'true',
          },
        },
      },
    ],
    [
      'lets autoscalers in again',
      own,
      { metadata: { annotations: { 'cluster-autoscaler.kubernetes.io/scale-down-disabled': null } } },
    ],
    ['sets its status label', own, { metadata: { labels: { 'skyhook.nvidia.com/status_demo': 'complete' } } }],
    [
      'sets the runtime-required taint',
      own,
      [
        {
          op: 'add',
          path: '/spec/taints/0',
          value: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
        },
      ],
      'application/json-patch+json',
    ],
    [
      'removes the runtime-required taint',
      own,
      [{ op: 'remove', path: '/spec/taints/0' }],
      'application/json-patch+json',
    ],
    ['sets a condition', `${own}/status`, condition('skyhook.nvidia.com/demo/NotReady'), strategic],
    [
      'removes a condition',
      `${own}/status`,
      { status: { conditions: [{ $patch: 'delete', type: 'skyhook.nvidia.com/demo/NotReady' }] } },
      strategic,
    ],
    [
      'writes everything of a completion at once',
      own,
      {
        metadata: {
          annotations: { 'skyhook.nvidia.com/cordon_demo': null, 'skyhook.nvidia.com/status_demo': 'complete' },
          labels: { 'skyhook.nvidia.com/status_demo': 'complete' },
        },
        spec: { unschedulable: false },
      },
    ],
  ])('an agent %s on its own Node', async (_, path, patch, contentType = merge) => {
    expect(await agents.a('PATCH', path, patch, contentType)).toEqual(allowed)
  })

  test.each<[string, string, unknown, RegExp, string?]>([
    [
      'a foreign annotation',
      own,
      { metadata: { annotations: { other: 'x' } } },
      /node-a may not change annotations other;/,
    ],
    [
      'the value of a foreign annotation',
      own,
      { metadata: { annotations: { theirs: 'changed' } } },
      /annotations theirs;/,
    ],
    [
      'the presence of a foreign annotation',
      own,
      { metadata: { annotations: { theirs: null } } },
      /annotations theirs;/,
    ],
    [
      'a label that others select by',
      own,
      { metadata: { labels: { 'skyhook.nvidia.com/node-type': 'gpu' } } },
      /labels skyhook.nvidia.com\/node-type;/,
    ],
    ['the presence of a foreign label', own, { metadata: { labels: { zone: null } } }, /labels zone;/],
    ['finalizers', own, { metadata: { finalizers: ['example.com/x'] } }, /may not change metadata.finalizers/],
    [
      'owners',
      own,
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-b', uid: 'x' }] } },
      /may not change metadata.ownerReferences/,
    ],
    ['the provider id', own, { spec: { providerID: 'cloud://1' } }, /may not change spec.providerID/],
    [
      'the pod network',
      own,
      { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] } },
      /may not change spec.podCIDR/,
    ],
    [
      'a foreign taint',
      own,
      [{ op: 'add', path: '/spec/taints/-', value: { key: 'other', effect: 'NoExecute' } }],
      /no taint but skyhook.nvidia.com/,
      'application/json-patch+json',
    ],
    ['the presence of a foreign taint', own, { spec: { taints: [] } }, /no taint but skyhook.nvidia.com/],
    [
      'the Ready condition',
      `${own}/status`,
      { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'r', message: 'm' }] } },
      /no condition but skyhook.nvidia.com/,
      strategic,
    ],
    ['its capacity', `${own}/status`, { status: { capacity: { cpu: '64' } } }, /may not change status.*[.]capacity/],
    [
      'its address',
      `${own}/status`,
      { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.9' }] } },
      /may not change status.addresses/,
    ],
    ['labels through the status', `${own}/status`, { metadata: { labels: { zone: 'two' } } }, /labels zone;/],
  ])('an agent does not change %s on its own Node', async (_, path, patch, words, contentType = merge) => {
    expect(await agents.a('PATCH', path, patch, contentType)).toEqual(refused(words))
  })

  test.each([
    ['a Node that does not exist', 'POST', nodes, { metadata: { name: 'node-c' } }],
    ['its Node', 'DELETE', own, undefined],
    ['all Nodes', 'DELETE', nodes, undefined],
  ])('an agent neither creates nor deletes %s', async (_, method, path, body) => {
    expect(await agents.a(method, path, body)).toEqual(
      refused(/forbidden: User "system:serviceaccount:skyhook:skyhookd" cannot/),
    )
  })
})

describe('runtime-required taints of an agent on its own Node', () => {
  const path = `${nodes}/node-a`
  const gpu: Taint = { key: 'gpu', effect: 'NoSchedule' }
  const skyhook: Taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const nodewright: Taint = { ...skyhook, key: 'nodewright.nvidia.com' }
  const noExecute: Taint = { ...nodewright, effect: 'NoExecute' }
  const setTaints = (taints: readonly Taint[]): [string, string, unknown, string] => [
    'PATCH',
    path,
    { spec: { taints } },
    merge,
  ]

  test.each<[string, readonly Taint[], readonly Taint[]]>([
    ["removes NodeWright's", [gpu, nodewright], [gpu]],
    ['removes both at once', [nodewright, gpu, skyhook], [gpu]],
    ["removes NodeWright's and sets its own", [nodewright, gpu], [gpu, skyhook]],
  ])('an agent %s', async (_, before, after) => {
    expect(await agents.cluster.admin(...setTaints(before))).toEqual(allowed)
    expect(await agents.a(...setTaints(after))).toEqual(allowed)
  })

  test.each<[string, readonly Taint[], readonly Taint[]]>([
    ["sets NodeWright's", [gpu], [gpu, nodewright]],
    ["gives NodeWright's another value", [gpu, nodewright], [gpu, { ...nodewright, value: 'other' }]],
    ["gives NodeWright's another effect", [gpu, nodewright], [gpu, noExecute]],
    ["removes another effect of NodeWright's key", [gpu, noExecute], [gpu]],
    ["removes one of others with NodeWright's", [gpu, nodewright], []],
  ])('an agent never %s', async (_, before, after) => {
    expect(await agents.cluster.admin(...setTaints(before))).toEqual(allowed)
    expect(await agents.a(...setTaints(after))).toEqual(
      refused(/no taint but skyhook.nvidia.com, and remove no other one but nodewright.nvidia.com:NoSchedule/),
    )
    expect(await agents.cluster.admin(...setTaints([gpu]))).toEqual(allowed)
  })

  test("an agent does not remove NodeWright's taint of another Node", async () => {
    const other = `${nodes}/node-b`
    expect(await agents.cluster.admin('PATCH', other, { spec: { taints: [gpu, nodewright] } }, merge)).toEqual(allowed)
    expect(await agents.a('PATCH', other, { spec: { taints: [gpu] } }, merge)).toEqual(
      refused('the agent of node node-a may not change node node-b'),
    )
    expect(await agents.cluster.admin('PATCH', other, { spec: { taints: [gpu] } }, merge)).toEqual(allowed)
  })
})

test('an agent is told which Node it may not change, and may read it', async () => {
  expect(await agents.a('PATCH', `${nodes}/node-b`, { spec: { unschedulable: true } }, strategic)).toEqual(
    refused('the agent of node node-a may not change node node-b'),
  )
  expect(await agents.a('GET', `${nodes}/node-b`)).toEqual(allowed)
})

test("the policies allow the agents' own patch of annotations, label, cordon, taint and conditions", async () => {
  const transport = await agents.transportOf('node-b')
  try {
    const node = await transport.json<KubeObject & { spec: { taints: Taint[] } }>('GET', `${nodes}/node-b`)
    const spec = await patchNode(transport, 'node-b', {
      resourceVersion: node.metadata.resourceVersion,
      annotations: { 'skyhook.nvidia.com/status_demo': 'in_progress', 'skyhook.nvidia.com/cordon_demo': 'true' },
      labels: { 'skyhook.nvidia.com/status_demo': 'in_progress' },
      unschedulable: true,
      taints: [{ key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }, ...node.spec.taints],
    })
    if (spec.outcome !== 'written') expect.unreachable()
    const written = await patchNode(transport, 'node-b', {
      resourceVersion: spec.metadata.resourceVersion,
      conditions: ['NotReady', 'Erroring'].map((type) => ({
        type: `skyhook.nvidia.com/demo/${type}`,
        status: 'True',
        reason: 'Incomplete',
        message: 'Skyhook demo Ready',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
    })
    expect(written).toMatchObject({ outcome: 'written' })
  } finally {
    transport.close()
  }
})

test('an agent learns from one small LIST how many Nodes there are', async () => {
  const transport = await agents.transportOf('node-a')
  try {
    const budget = { percent: 10 }
    const view = { metadata: { name: 's', uid: 'u', resourceVersion: '1' }, spec: {}, budget, stale: false }
    const { signal } = new AbortController()
    const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', nodes)
    expect(items.length).toBeGreaterThan(1)
    expect(await withNodeCount(transport, view, { isJoining: false, signal })).toEqual({ ...view, nodes: items.length })
  } finally {
    transport.close()
  }
})
