/** The limits of a token outside its pod, and with more rights than intended, on a real API server. */
import { beforeAll, describe, expect, test } from 'vitest'
import { allowed, createPod, leases, nodes, refused, skyhook, skyhooks, slotOf, useAgents } from './agents.ts'
import { namespace, until } from './chart-cluster.ts'
import { patch, post, put, remove, tryRows } from './request-rows.ts'

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
  const refusal = 'this token names no node; agents may write only with the token of their own pod'
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'none' } }
  const slot = { metadata: { name: 'demo-0a1b2c3d.slot-9' }, spec: { holderIdentity: '' } }

  tryRows('a token that names no node cannot write %s', () => agents.unbound, [
    ['a Node', patch(`${nodes}/node-a`, { metadata: { annotations: { 'skyhook.nvidia.com/x': 'y' } } }), refusal],
    ['a slot', post(leases, slot), refusal],
    ['the census election', post(leases, { metadata: { name: 'skyhookd-census' } }), refusal],
    ['an annotation of a Skyhook', patch(`${skyhooks}/demo`, { metadata: { annotations: { x: 'y' } } }), refusal],
    ['an eviction', post('/api/v1/namespaces/default/pods/none/eviction', eviction), refusal],
    [
      "a Skyhook's status",
      put(agents, `${skyhooks}/demo/status`, (object) => Object.assign(object, { status: { status: 'complete' } })),
      refusal,
    ],
  ])
})

describe('rights beyond the chart', () => {
  const slotOfB = 'demo-0a1b2c3d.slot-7'

  beforeAll(async () => {
    expect(await agents.b('POST', leases, slotOf(agents, 'node-b', slotOfB))).toEqual(allowed)
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

  const pods = `/api/v1/namespaces/${namespace}/pods`
  const spec = { serviceAccountName: 'skyhookd', containers: [{ name: 'c', image: 'i' }] }
  tryRows('the policies stop an agent with too many rights that tries to %s', () => agents.a, [
    ['create a Node', post(nodes, { metadata: { name: 'node-c' } }), /neither creates nor deletes nodes/],
    ['delete its Node', remove(`${nodes}/node-a`), /neither creates nor deletes nodes/],
    ['create a pod', post(pods, { metadata: { name: 'p' }, spec }), /neither creates nor changes pods/],
    ['delete a pod of its node', remove(`${pods}/agent-of-node-a`), /deletes none without drain.allowDelete/],
    ['create a Skyhook', post(skyhooks, skyhook('new')), /neither create nor delete skyhooks/],
    ['delete a Skyhook', remove(`${skyhooks}/demo`), /neither create nor delete skyhooks/],
    [
      "patch another node's slot",
      patch(`${leases}/${slotOfB}`, { spec: { holderIdentity: 'node-a' } }),
      /held by node node-b/,
    ],
    ['delete the slots of all nodes', remove(leases), /held by node node-b/],
  ])
})
