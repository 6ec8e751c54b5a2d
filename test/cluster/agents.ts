/**
 * Agents of two nodes as the API server sees them: tokens of pods on these nodes, under the chart's roles and policies.
 */
import { afterAll, beforeAll, expect } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { indexedName, nodeLabels, skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import { createKubeTransport, type KubeTransport } from '../../src/kube/transport.ts'
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import {
  namespace,
  startInstalledCluster,
  until,
  type Answer,
  type ChartCluster,
  type Json,
  type Send,
} from './chart-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

export const merge = 'application/merge-patch+json'
export const strategic = 'application/strategic-merge-patch+json'
export const nodes = '/api/v1/nodes'
export const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
export const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
export const policies = '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies'

/** The answers to a granted request, and to one refused by RBAC or a policy; 422 by that of one slot per holder. */
export const allowed = expect.objectContaining({ status: expect.toBeOneOf([200, 201]) as number, message: '' })
export const refused = (expected: string | RegExp, status: 403 | 422 = 403): unknown =>
  expect.objectContaining({
    status,
    message: typeof expected === 'string' ? expect.stringContaining(expected) : expect.stringMatching(expected),
  })

export type NodeName = 'node-a' | 'node-b'
export type Agents = {
  readonly cluster: ChartCluster
  readonly a: Send
  readonly b: Send
  /** Requests with a token of the same ServiceAccount that is bound to no pod. */
  readonly unbound: Send
  readonly uids: Readonly<Record<NodeName, string>>
  /** A client with the token of a node's agent; the caller closes it. */
  readonly transportOf: (node: NodeName) => Promise<KubeTransport>
}

/**
 * The agents of a cluster for one test file: their fields are set once the file's tests run. With `values` for the
 * chart, as `--set` takes them, the cluster is the file's own.
 */
export function useAgents(...values: string[]): Agents {
  const agents = {} as Agents
  let stop = async (): Promise<void> => undefined
  beforeAll(async () => {
    Object.assign(agents, await startAgents(values))
    stop = async () => await agents.cluster.stop()
  })
  afterAll(async () => await stop())
  return agents
}

/** Registers node-a and node-b, and creates the Skyhook `demo`; returns once all policies are in effect. */
async function startAgents(values: readonly string[]): Promise<Agents> {
  const cluster = values.length === 0 ? await borrowChartCluster() : await startInstalledCluster(...values)
  const a = await agentOf(cluster, 'node-a')
  const b = await agentOf(cluster, 'node-b')
  const unbound = cluster.as(await token(cluster, {}))
  expect(await cluster.admin('POST', skyhooks, skyhook('demo'))).toEqual(allowed)
  await awaitPolicies(unbound, values.includes('drain.allowDelete=true'))
  await awaitOneSlotPolicy(cluster, { 'node-a': a.token, 'node-b': b.token })
  return {
    cluster,
    a: cluster.as(a.token),
    b: cluster.as(b.token),
    unbound,
    uids: { 'node-a': a.uid, 'node-b': b.uid },
    async transportOf(node) {
      const { url: server, credentials } = cluster.server
      const { ca = '' } = await credentials.current()
      const token = node === 'node-a' ? a.token : b.token
      return createKubeTransport({
        credentials: staticCredentials({ server, ca, token }),
        version: 'test',
        clock: systemClock,
        rate: false,
      })
    },
  }
}

export const skyhook = (name: string, spec: Json = {}): Json => ({
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'Skyhook',
  metadata: { name, labels: { team: 'infra' }, annotations: { theirs: 'kept' }, finalizers: ['example.com/theirs'] },
  spec: { packages: { tuning: { version: '1.0.0', image: 'tuning' } }, ...spec },
})

/** A slot of the Skyhook `demo`, whose scope is in the name, as the node's agent creates it. */
export const slotOf = ({ uids }: Agents, node: NodeName, name: string) => ({
  metadata: {
    name,
    labels: {
      'skyhook.nvidia.com/name': 'demo',
      'skyhook.nvidia.com/scope': /-([0-9a-f]{8})/.exec(name)?.[1],
      'skyhook.nvidia.com/slot-kind': 'slot',
      ...nodeLabels(node),
    },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node, uid: uids[node] }],
  },
  spec: { holderIdentity: node },
})

/**
 * Creates a pod that its node never starts, and the namespace's default ServiceAccount if necessary; returns its path.
 */
export async function createPod(
  cluster: ChartCluster,
  pod: { name: string; node: NodeName; place: string; labels?: Json },
): Promise<string> {
  const { name, node, place, labels } = pod
  await cluster.admin('POST', `/api/v1/namespaces/${place}/serviceaccounts`, { metadata: { name: 'default' } })
  const spec = { nodeName: node, containers: [{ name: 'c', image: 'none' }] }
  expect(await cluster.admin('POST', `/api/v1/namespaces/${place}/pods`, { metadata: { name, labels }, spec })).toEqual(
    allowed,
  )
  return `/api/v1/namespaces/${place}/pods/${name}`
}

async function agentOf(cluster: ChartCluster, name: NodeName): Promise<{ token: string; uid: string }> {
  const metadata = {
    name,
    labels: { zone: 'one', 'skyhook.nvidia.com/node-type': 'worker' },
    annotations: { theirs: 'kept' },
  }
  const node = await cluster.admin('POST', nodes, {
    metadata,
    spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] },
  })
  expect(node).toEqual(allowed)
  const spec = { nodeName: name, serviceAccountName: 'skyhookd', containers: [{ name: 'agent', image: 'none' }] }
  const pod = { metadata: { name: `agent-of-${name}` }, spec }
  expect(await cluster.admin('POST', `/api/v1/namespaces/${namespace}/pods`, pod)).toEqual(allowed)
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: `agent-of-${name}` }
  return { token: await token(cluster, { boundObjectRef }), uid: String((node.body['metadata'] as Json)['uid']) }
}

async function token(cluster: ChartCluster, spec: Json): Promise<string> {
  const { body } = await cluster.admin('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/skyhookd/token`, {
    spec,
  })
  return String((body['status'] as Json)['token'])
}

/** Policies take effect some tenths of a second after they are written: waits until each one refuses its case. */
async function awaitPolicies(unbound: Send, mayDelete: boolean): Promise<void> {
  const isRefusedBy = (policy: string) => (answer: Answer) => answer.message.includes(`'skyhookd-${policy}'`)
  const dry = '?dryRun=All'
  const label = { metadata: { labels: { x: 'y' } } }
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'none' } }
  await until(() => unbound('PATCH', `${nodes}/node-a${dry}`, label, merge), isRefusedBy('own-node'))
  await until(() => unbound('POST', `${leases}${dry}`, { metadata: { name: 'none' } }), isRefusedBy('own-slot'))
  await until(() => unbound('PATCH', `${skyhooks}/demo${dry}`, label, merge), isRefusedBy('skyhooks-by-agents'))
  // without the right to delete pods the policy is not asked
  if (mayDelete)
    await until(
      () => unbound('DELETE', `/api/v1/namespaces/${namespace}/pods/agent-of-node-a${dry}`),
      isRefusedBy('own-pods'),
    )
  await until(
    () => unbound('POST', '/api/v1/namespaces/default/pods/none/eviction', eviction),
    isRefusedBy('evictions'),
  )
}

/** The same for the policy that compares Leases: waits until it refuses each node a second slot. */
async function awaitOneSlotPolicy(cluster: ChartCluster, tokens: Readonly<Record<NodeName, string>>): Promise<void> {
  const scope = skyhookScope({ name: 'awaited', uid: 'none' })
  for (const [name, token] of Object.entries(tokens)) {
    const { body } = await cluster.admin('GET', `${nodes}/${name}`)
    const node = { name, uid: String((body['metadata'] as Json)['uid']), bootId: '' }
    const slot = (index: number): unknown =>
      newLease(scope, { index }, node, { phase: 'working', generation: 1, packages: [] }, 0)
    expect(await cluster.admin('POST', leases, slot(0))).toEqual(allowed)
    const send = cluster.as(token)
    await until(
      () => send('POST', `${leases}?dryRun=All`, slot(1)),
      ({ message }) => message.includes("'skyhookd-one-slot'"),
    )
    expect(await cluster.admin('DELETE', `${leases}/${indexedName(scope, 0)}`)).toEqual(allowed)
  }
}
