/** The limits of a token outside its pod, and with more rights than intended, on a real API server. */
import { beforeAll, describe, expect, test } from 'vitest'
import { nodeLabels } from '../../src/lease/names.ts'
import { allowed, createPod, leases, merge, nodes, refused, skyhook, skyhooks, useAgents } from './agents.ts'
import { namespace, until } from './chart-cluster.ts'

const agents = useAgents()

describe('pods', () => {
  test('an agent cannot delete a pod, not even on its own node', async () => {
    expect(
      await agents.a('DELETE', await createPod(agents.cluster, { place: 'default', name: 'shop', node: 'node-a' })),
    ).toEqual(refused(/cannot delete resource "pods"/))
  })

  test('an agent may evict pods, but not from namespaces that drains skip', async () => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted' } }
    const pod = await createPod(agents.cluster, { place: 'default', name: 'evicted', node: 'node-a' })
    const system = await createPod(agents.cluster, { place: 'kube-system', name: 'evicted', node: 'node-a' })
    expect(await agents.a('POST', `${pod}/eviction`, eviction)).toEqual(allowed)
    expect(await agents.a('POST', `${system}/eviction`, eviction)).toEqual(
      refused('may not evict from namespace kube-system'),
    )
  })
})

describe('a token that names no node', () => {
  const words = 'this token names no node; agents may write only with the token of their own pod'

  test.each<[string, string, string, unknown]>([
    ['a Node', 'PATCH', `${nodes}/node-a`, { metadata: { annotations: { 'skyhook.nvidia.com/x': 'y' } } }],
    ['a slot', 'POST', leases, { metadata: { name: 'demo-0a1b2c3d.slot-9' }, spec: { holderIdentity: '' } }],
    ['the census election', 'POST', leases, { metadata: { name: 'skyhookd-census' } }],
    ['an annotation of a Skyhook', 'PATCH', `${skyhooks}/demo`, { metadata: { annotations: { x: 'y' } } }],
    [
      'an eviction',
      'POST',
      '/api/v1/namespaces/default/pods/none/eviction',
      { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'none' } },
    ],
  ])('a token that names no node cannot write %s', async (_, method, path, body) => {
    expect(await agents.unbound(method, path, body, method === 'PATCH' ? merge : undefined)).toEqual(refused(words))
  })

  test("a token that names no node cannot write a Skyhook's status", async () => {
    const { body } = await agents.cluster.admin('GET', `${skyhooks}/demo`)
    const written = { ...body, status: { status: 'complete' } }
    expect(await agents.unbound('PUT', `${skyhooks}/demo/status`, written)).toEqual(refused(words))
  })
})

describe('rights beyond the chart', () => {
  const slotOfB = 'demo-0a1b2c3d.slot-7'

  beforeAll(async () => {
    const metadata = {
      name: slotOfB,
      labels: {
        'skyhook.nvidia.com/name': 'demo',
        'skyhook.nvidia.com/scope': '0a1b2c3d',
        'skyhook.nvidia.com/slot-kind': 'slot',
        ...nodeLabels('node-b'),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-b', uid: agents.uids['node-b'] }],
    }
    expect(await agents.b('POST', leases, { metadata, spec: { holderIdentity: 'node-b' } })).toEqual(allowed)
    const subjects = [{ kind: 'ServiceAccount', name: 'skyhookd', namespace }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' }
    expect(
      await agents.cluster.admin('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
        metadata: { name: 'too-much' },
        roleRef,
        subjects,
      }),
    ).toEqual(allowed)
    await until(
      () => agents.a('DELETE', `/api/v1/namespaces/${namespace}/pods/agent-of-node-a?dryRun=All`),
      ({ message }) => message.includes("'skyhookd-own-pods'"),
    )
  })

  test.each<[string, string, string, unknown, RegExp]>([
    ['create a Node', 'POST', nodes, { metadata: { name: 'node-c' } }, /neither creates nor deletes nodes/],
    ['delete its Node', 'DELETE', `${nodes}/node-a`, undefined, /neither creates nor deletes nodes/],
    [
      'create a pod',
      'POST',
      `/api/v1/namespaces/${namespace}/pods`,
      { metadata: { name: 'p' }, spec: { serviceAccountName: 'skyhookd', containers: [{ name: 'c', image: 'i' }] } },
      /neither creates nor changes pods/,
    ],
    [
      'delete a pod of its node',
      'DELETE',
      `/api/v1/namespaces/${namespace}/pods/agent-of-node-a`,
      undefined,
      /deletes none without drain.allowDelete/,
    ],
    ['create a Skyhook', 'POST', skyhooks, skyhook('new'), /neither create nor delete skyhooks/],
    ['delete a Skyhook', 'DELETE', `${skyhooks}/demo`, undefined, /neither create nor delete skyhooks/],
    [
      "patch another node's slot",
      'PATCH',
      `${leases}/${slotOfB}`,
      { spec: { holderIdentity: 'node-a' } },
      /held by node node-b/,
    ],
    ['delete the slots of all nodes', 'DELETE', leases, undefined, /held by node node-b/],
  ])('the policies stop an agent with too many rights that tries to %s', async (_, method, path, body, words) => {
    expect(await agents.a(method, path, body, method === 'PATCH' ? merge : undefined)).toEqual(refused(words))
  })
})
