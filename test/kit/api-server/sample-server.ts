/** A simulated server on virtual time, with objects for its tests. */
import type { KubeObject } from '../../../src/kube/objects.ts'
import type { KubeRequestOptions, KubeTransport, Method } from '../../../src/kube/transport.ts'
import { createSeededRandom, createVirtualClock, eventually, type VirtualClock } from '../virtual-clock.ts'
import { type ClientOptions, createClient, type SimClient } from './client.ts'
import { type Edits, editsOf } from './edits.ts'
import type { Fault } from './faults.ts'
import { queryOf, type RoutedRequest } from './request.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from './server.ts'

export const nodesPath = '/api/v1/nodes'
export const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
export const eventsPath = '/api/v1/namespaces/default/events'
export const podsPath = '/api/v1/namespaces/default/pods'
export const budgetsPath = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
export const merge = 'application/merge-patch+json'

/** A request as a client sent it, whether it arrived or not. */
type SentRequest = Pick<RoutedRequest, 'client' | 'method' | 'path' | 'query' | 'body' | 'accept'> & {
  readonly isWatch: boolean
}

export type Sample = Edits & {
  readonly clock: VirtualClock
  readonly server: SimulatedApiServer
  readonly admin: KubeTransport
  readonly connect: (options?: Partial<ClientOptions>) => SimClient
  /** Of all clients, oldest first; empty it as you like. */
  readonly sent: SentRequest[]
  /** One more fault, for the next requests that match and no earlier fault applies to. */
  readonly fault: (matches: (request: RoutedRequest) => boolean, fault: Fault, times?: number) => void
  /** Ends all watches and whatever is under way, as a restart of the server does. */
  readonly breakConnections: () => void
  readonly eventually: (check: () => void, withinMs?: number) => Promise<void>
}

export function sampleServer(seed = 1): Sample {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(seed)
  const server = createSimulatedApiServer({ clock, random })
  const sent: SentRequest[] = []
  const connect: Sample['connect'] = (options = {}) => {
    const client = createClient(server, { name: 'agent', clock, random, ...options })
    const note = (method: Method, path: string, request: KubeRequestOptions | undefined, isWatch: boolean): void => {
      const { query, body, accept } = request ?? {}
      sent.push({ client: options.name ?? 'agent', method, path, query: queryOf(query), body, accept, isWatch })
    }
    return {
      ...client,
      async json<T>(method: Method, path: string, request?: KubeRequestOptions): Promise<T> {
        note(method, path, request, false)
        return await client.json<T>(method, path, request)
      },
      async stream(path, request) {
        note('GET', path, request, true)
        return await client.stream(path, request)
      },
    }
  }

  return {
    clock,
    server,
    connect,
    admin: connect({ name: 'admin', manager: 'kubectl' }),
    sent,
    ...editsOf(server),
    fault: (matches, fault, times = 1) => void server.faults.rules.push({ name: fault.kind, fault, matches, times }),
    breakConnections() {
      server.stop()
      server.start()
    },
    eventually: async (check, withinMs) => await eventually(clock, check, withinMs),
  }
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
