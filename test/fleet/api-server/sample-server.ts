/** A simulated server on virtual time, with objects for its tests. */
import type { KubeObject } from '../../../src/kube/objects.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts'
import { type ClientOptions, createClient, type SimClient } from './client.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from './server.ts'

export const nodesPath = '/api/v1/nodes'
export const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
export const eventsPath = '/api/v1/namespaces/default/events'
export const podsPath = '/api/v1/namespaces/default/pods'
export const budgetsPath = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
export const merge = 'application/merge-patch+json'

export type Sample = {
  readonly clock: VirtualClock
  readonly server: SimulatedApiServer
  readonly admin: KubeTransport
  readonly connect: (options?: Partial<ClientOptions>) => SimClient
}

export function sampleServer(seed = 1): Sample {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(seed)
  const server = createSimulatedApiServer({ clock, random })
  const connect: Sample['connect'] = (options = {}) =>
    createClient(server, { name: 'agent', clock, random, ...options })
  return { clock, server, connect, admin: connect({ name: 'admin', manager: 'kubectl' }) }
}

export const createNode = async (api: KubeTransport, name: string): Promise<KubeObject> =>
  await api.json('POST', nodesPath, { body: { metadata: { name } } })

export const createLease = async (api: KubeTransport, name: string, owner?: KubeObject): Promise<KubeObject> => {
  const ownerReferences = owner && [
    { apiVersion: 'v1', kind: 'Node', name: owner.metadata.name, uid: owner.metadata.uid },
  ]
  return await api.json('POST', leasesPath, { body: { metadata: { name, ownerReferences }, spec: {} } })
}

/** A pod that runs on node n1 and is ready. */
export async function createPod(api: KubeTransport, name: string): Promise<void> {
  const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] }
  await api.json('POST', podsPath, { body: { metadata: { name, labels: { app: 'cart' } }, spec } })
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
  await api.json('PATCH', `${podsPath}/${name}/status`, { body: { status }, contentType: merge })
}

export const namesOf = (server: SimulatedApiServer, plural: string): string[] =>
  server.objects(plural).map(({ metadata }) => metadata.name)
