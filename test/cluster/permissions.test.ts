/**
 * What an agent's token may change on Nodes and Skyhooks, and who may delete a policy, on a real API server with the
 * chart's roles and policies.
 */
import { describe, expect, test } from 'vitest'
import { withNodeCount } from '../../src/daemon/slots/slot-requests.ts'
import { patchNode } from '../../src/kube/node-writer.ts'
import type { KubeObject, ObjectList } from '../../src/kube/objects.ts'
import type { Taint } from '../../src/schemas/kubernetes.ts'
import {
  allowed,
  merge,
  nodes,
  policies,
  refused,
  skyhook,
  skyhooks,
  strategic,
  useAgents,
  type NodeName,
} from './agents.ts'
import { namespace, until, type Json } from './chart-cluster.ts'
import { get, jsonPatch, patch, post, put, remove, send, tryRows, type Wanted } from './request-rows.ts'

const agents = useAgents()
const byAgent = () => agents.a
const annotated = (annotations: Json): Json => ({ metadata: { annotations } })
const labeled = (labels: Json): Json => ({ metadata: { labels } })

describe('a Node', () => {
  const own = `${nodes}/node-a`
  const condition = (type: string, change: Json = { status: 'True', reason: 'Incomplete', message: 'm' }): Wanted =>
    patch(`${own}/status`, { status: { conditions: [{ type, ...change }] } }, strategic)
  const runtimeRequired: Taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const noScaling = 'cluster-autoscaler.kubernetes.io/scale-down-disabled'

  tryRows('an agent %s on its own Node', byAgent, [
    ['cordons and uncordons', patch(own, { spec: { unschedulable: true } })],
    ['uncordons', patch(own, { spec: { unschedulable: null } })],
    [
      'publishes its state',
      patch(own, annotated({ 'skyhook.nvidia.com/nodeState_demo': '{}', 'skyhook.nvidia.com/reason_demo': '{}' })),
    ],
    ['removes an annotation of its own', patch(own, annotated({ 'skyhook.nvidia.com/reason_demo': null }))],
    ['keeps autoscalers off', patch(own, annotated({ [noScaling]: 'true', 'karpenter.sh/do-not-disrupt': 'true' }))],
    ['lets autoscalers in again', patch(own, annotated({ [noScaling]: null }))],
    ['sets its status label', patch(own, labeled({ 'skyhook.nvidia.com/status_demo': 'complete' }))],
    ['sets the runtime-required taint', jsonPatch(own, { op: 'add', path: '/spec/taints/0', value: runtimeRequired })],
    ['removes the runtime-required taint', jsonPatch(own, { op: 'remove', path: '/spec/taints/0' })],
    ['sets a condition', condition('skyhook.nvidia.com/demo/NotReady')],
    ['removes a condition', condition('skyhook.nvidia.com/demo/NotReady', { $patch: 'delete' })],
    [
      'writes everything of a completion at once',
      patch(own, {
        metadata: {
          annotations: { 'skyhook.nvidia.com/cordon_demo': null, 'skyhook.nvidia.com/status_demo': 'complete' },
          labels: { 'skyhook.nvidia.com/status_demo': 'complete' },
        },
        spec: { unschedulable: false },
      }),
    ],
  ])

  const foreign: Json = { key: 'other', effect: 'NoExecute' }
  const ownerOfNode = { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-b', uid: 'x' }] }
  const address = { type: 'InternalIP', address: '10.0.0.9' }
  tryRows('an agent does not change %s on its own Node', byAgent, [
    ['a foreign annotation', patch(own, annotated({ other: 'x' })), /node-a may not change annotations other;/],
    ['the value of a foreign annotation', patch(own, annotated({ theirs: 'changed' })), /annotations theirs;/],
    ['the presence of a foreign annotation', patch(own, annotated({ theirs: null })), /annotations theirs;/],
    [
      'a label that others select by',
      patch(own, labeled({ 'skyhook.nvidia.com/node-type': 'gpu' })),
      /labels skyhook.nvidia.com\/node-type;/,
    ],
    ['the presence of a foreign label', patch(own, labeled({ zone: null })), /labels zone;/],
    ['finalizers', patch(own, { metadata: { finalizers: ['example.com/x'] } }), /may not change metadata.finalizers/],
    ['owners', patch(own, { metadata: ownerOfNode }), /may not change metadata.ownerReferences/],
    ['the provider id', patch(own, { spec: { providerID: 'cloud://1' } }), /may not change spec.providerID/],
    [
      'the pod network',
      patch(own, { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] } }),
      /may not change spec.podCIDR/,
    ],
    [
      'a foreign taint',
      jsonPatch(own, { op: 'add', path: '/spec/taints/-', value: foreign }),
      /no taint but skyhook.nvidia.com/,
    ],
    ['the presence of a foreign taint', patch(own, { spec: { taints: [] } }), /no taint but skyhook.nvidia.com/],
    [
      'the Ready condition',
      condition('Ready', { status: 'True', reason: 'r', message: 'm' }),
      /no condition but skyhook.nvidia.com/,
    ],
    [
      'its capacity',
      patch(`${own}/status`, { status: { capacity: { cpu: '64' } } }),
      /may not change status.*[.]capacity/,
    ],
    ['its address', patch(`${own}/status`, { status: { addresses: [address] } }), /may not change status.addresses/],
    ['labels through the status', patch(`${own}/status`, labeled({ zone: 'two' })), /labels zone;/],
  ])

  const cannot = /forbidden: User "system:serviceaccount:skyhook:skyhookd" cannot/
  tryRows('an agent neither creates nor deletes %s', byAgent, [
    ['a Node that does not exist', post(nodes, { metadata: { name: 'node-c' } }), cannot],
    ['its Node', remove(own), cannot],
    ['all Nodes', remove(nodes), cannot],
  ])

  const gpu: Taint = { key: 'gpu', effect: 'NoSchedule' }
  const nodewright: Taint = { ...runtimeRequired, key: 'nodewright.nvidia.com' }
  const noExecute: Taint = { ...nodewright, effect: 'NoExecute' }
  const noOther = /no taint but skyhook.nvidia.com, and remove no other one but nodewright.nvidia.com:NoSchedule/
  const ofOther = 'the agent of node node-a may not change node node-b'
  test.each<[string, readonly Taint[], readonly Taint[], (string | RegExp)?, NodeName?]>([
    ["removes NodeWright's", [gpu, nodewright], [gpu]],
    ['removes both at once', [nodewright, gpu, runtimeRequired], [gpu]],
    ["removes NodeWright's and sets its own", [nodewright, gpu], [gpu, runtimeRequired]],
    ["never sets NodeWright's", [gpu], [gpu, nodewright], noOther],
    ["never gives NodeWright's another value", [gpu, nodewright], [gpu, { ...nodewright, value: 'other' }], noOther],
    ["never gives NodeWright's another effect", [gpu, nodewright], [gpu, noExecute], noOther],
    ["never removes another effect of NodeWright's key", [gpu, noExecute], [gpu], noOther],
    ["never removes one of others with NodeWright's", [gpu, nodewright], [], noOther],
    ["never removes NodeWright's of another Node", [gpu, nodewright], [gpu], ofOther, 'node-b'],
  ])('an agent %s among the taints of a Node', async (_, before, after, refusal, node = 'node-a') => {
    const taints = (wanted: readonly Taint[]) => patch(`${nodes}/${node}`, { spec: { taints: wanted } })
    const { admin } = agents.cluster
    expect(await send(admin, taints(before))).toEqual(allowed)
    expect(await send(agents.a, taints(after))).toEqual(refusal === undefined ? allowed : refused(refusal))
    expect(await send(admin, taints([gpu]))).toEqual(allowed)
  })

  tryRows('an agent %s', byAgent, [
    [
      'is told which Node it may not change',
      patch(`${nodes}/node-b`, { spec: { unschedulable: true } }, strategic),
      ofOther,
    ],
    ['reads another Node', get(`${nodes}/node-b`)],
  ])
})

describe('a Skyhook', () => {
  const demo = `${skyhooks}/demo`
  const finalizers = (...names: string[]): Wanted => patch(demo, { metadata: { finalizers: names } })

  tryRows('an agent may write %s of a Skyhook', byAgent, [
    ['the version annotation', patch(demo, annotated({ 'skyhook.nvidia.com/version': 'v0.15.0' }))],
    ['the finalizer of skyhookd', finalizers('example.com/theirs', 'skyhook.nvidia.com/skyhook')],
    ['the removal of the finalizer of skyhookd', finalizers('example.com/theirs')],
    [
      'the status',
      put(agents, `${demo}/status`, (object) =>
        Object.assign(object, { status: { status: 'in_progress', nodesInProgress: 1 } }),
      ),
    ],
  ])

  const owner = { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-a', uid: 'x' }] }
  tryRows('an agent may not write %s of a Skyhook', byAgent, [
    [
      'another package image',
      patch(demo, { spec: { packages: { tuning: { image: 'evil' } } } }),
      /node-a may not change the spec of Skyhook demo/,
    ],
    ['another budget', patch(demo, { spec: { interruptionBudget: { count: 99 } } }), /may not change the spec/],
    [
      'a pause',
      patch(demo, annotated({ 'skyhook.nvidia.com/pause': 'true' })),
      /annotations skyhook.nvidia.com\/pause of Skyhook demo/,
    ],
    [
      'the removal of a foreign annotation',
      patch(demo, annotated({ theirs: null })),
      /annotations theirs of Skyhook demo/,
    ],
    ['a label', patch(demo, labeled({ team: 'other' })), /may not change metadata.labels of Skyhook demo/],
    ['an owner', patch(demo, { metadata: owner }), /metadata.ownerReferences/],
    [
      'a foreign finalizer',
      finalizers('example.com/theirs', 'example.com/ours'),
      /no finalizer of Skyhook demo but skyhook.nvidia.com\/skyhook/,
    ],
    ['the removal of a foreign finalizer', finalizers(), /no finalizer of Skyhook demo/],
  ])

  tryRows('an agent cannot %s', byAgent, [
    ['create a Skyhook', post(skyhooks, skyhook('new')), /cannot/],
    ['delete a Skyhook', remove(demo), /cannot/],
    ['create a DeploymentPolicy', post(policies, skyhook('new')), /cannot/],
    ['list Secrets', get(`/api/v1/namespaces/${namespace}/secrets`), /cannot/],
    ['read a Secret of another namespace', get('/api/v1/namespaces/kube-system/secrets/x'), /cannot/],
  ])

  test('an agent may ask which groups are served', async () => {
    expect(await agents.a('GET', '/apis/skyhook.nvidia.com')).toEqual(allowed)
    expect(await agents.a('GET', '/apis/nodewright.nvidia.com')).toMatchObject({ status: 404 })
  })
})

test('a DeploymentPolicy is deleted only when no Skyhook names it', async () => {
  const spec = { default: { budget: { count: 1 }, strategy: { fixed: {} } } }
  expect(
    await agents.cluster.admin('POST', policies, {
      apiVersion: 'skyhook.nvidia.com/v1alpha1',
      kind: 'DeploymentPolicy',
      metadata: { name: 'careful' },
      spec,
    }),
  ).toEqual(allowed)
  expect(await agents.cluster.admin('POST', skyhooks, skyhook('paced', { deploymentPolicy: 'careful' }))).toEqual(
    allowed,
  )
  const remove = (dry = '') => agents.cluster.admin('DELETE', `${policies}/careful${dry}`)

  expect(
    await until(
      () => remove('?dryRun=All'),
      ({ status }) => status === 403,
      45_000, // until the API server finds a new kind for its policies, at most 30 s after its definition
    ),
  ).toEqual(refused('DeploymentPolicy careful is in use by Skyhook paced; change spec.deploymentPolicy there first'))

  expect(await agents.cluster.admin('PATCH', `${skyhooks}/paced`, { spec: { deploymentPolicy: null } }, merge)).toEqual(
    allowed,
  )
  expect(
    await until(
      () => remove(),
      ({ status }) => status === 200,
    ),
  ).toEqual(allowed)
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
