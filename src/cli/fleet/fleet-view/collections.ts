/** The collections of a fleet: the path of each, and what is kept of its objects. */
import { listAll, metadataOnlyListAccept } from '../../../kube/objects.ts'
import { labelKeys } from '../../../lease/names.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import { agentSelector, policiesPath, skyhooksPath } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { agentPodOf, daemonSetOf, slimLease, slimNode, slimPolicy, slimSkyhook } from './project.ts'
import { settingsOf, type FleetSettings } from './settings.ts'
import type { KubeTransport, Query } from '../../../kube/transport.ts'
import { type Known, known, unknown } from '../../../stages/model/snapshot.ts'
import { readable, mapped } from './readable.ts'
import { isLedger, isStray, type Lease, readSlot } from '../../../lease/slot.ts'
import type { Clock } from '../../../schemas/clock.ts'
import type { FleetView } from './fleet-view.ts'

export type Collection<T> = {
  /** Plural, as in "you may not read Leases in namespace skyhook". */
  readonly what: string
  readonly path: string
  readonly query?: Query
  /** What is kept of an object; undefined: nothing. Called page by page: the rest never accumulates in memory. */
  readonly keep: (object: never) => T | undefined
  /** Only metadata is requested: `keep` gets nothing else. */
  readonly metadataOnly?: boolean
  /** The number of objects in one answer, which is parsed in one piece. */
  readonly pageSize?: number
}

/** Reads a collection in one consistent LIST by pages. Throws the errors of the transport. */
export async function listCollection<T>(
  transport: KubeTransport,
  { path, query, keep, metadataOnly = false, pageSize }: Collection<T>,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const { items } = await listAll<never, T | undefined>(transport, path, {
    query,
    signal,
    transform: keep,
    ...(metadataOnly && { accept: metadataOnlyListAccept }),
    ...(pageSize !== undefined && { pageSize }),
  })
  return items.flatMap((item) => (item === undefined ? [] : [item]))
}

export type CollectionReader = <T>(collection: Collection<T>) => Promise<Known<readonly T[]>>

/** Lists collections. Those that the caller may not read are unknown. Throws if the API server does not answer. */
export const readerOf =
  (transport: KubeTransport, signal?: AbortSignal): CollectionReader =>
  async (collection) =>
    await readable(collection.what, listCollection(transport, collection, signal))

export const nodesPath = '/api/v1/nodes'
/** Nodes are large, and a page of them is parsed in one piece. */
const nodePageSize = 50

/** `namespace`: of the agents and their Leases. */
export const fleetCollections = (namespace: string) =>
  ({
    skyhooks: { what: 'Skyhooks', path: skyhooksPath, keep: slimSkyhook },
    policies: { what: 'DeploymentPolicies', path: policiesPath, keep: slimPolicy },
    nodes: nodesAs(slimNode),
    // slots and ledgers in one LIST: they refer to each other
    leases: {
      what: `Leases in namespace ${namespace}`,
      path: leasesPathOf({ namespace }),
      query: { labelSelector: labelKeys.slotKind },
      keep: slimLease,
    },
    agents: {
      what: `Pods in namespace ${namespace}`,
      path: podsPathIn(namespace),
      query: ofAgents,
      keep: agentPodOf,
    },
    daemonSets: {
      what: `DaemonSets in namespace ${namespace}`,
      path: `/apis/apps/v1/namespaces/${namespace}/daemonsets`,
      query: ofAgents,
      keep: daemonSetOf,
    },
    settings: {
      what: `ConfigMaps in namespace ${namespace}`,
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      query: ofAgents,
      keep: settingsOf,
    },
  }) satisfies Readonly<Record<string, Collection<unknown>>>

const ofAgents = { labelSelector: agentSelector }

/** Nodes, with what `keep` makes of each. */
export const nodesAs = <Node>(keep: (node: KubernetesNode) => Node, metadataOnly = false): Collection<Node> => ({
  what: 'Nodes',
  path: nodesPath,
  keep,
  metadataOnly,
  pageSize: nodePageSize,
})

export const podsPathIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`

export type FleetRequest<Node> = {
  readonly namespace: string
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** What is kept of each Node. */
  readonly nodeOf: (node: KubernetesNode) => Node
  /** Only the metadata of Nodes is asked for; `nodeOf` then gets no spec and no status. */
  readonly isMetadataEnough?: boolean
}

/**
 * Reads everything that a view of the fleet needs, in consistent LISTs by pages. Throws for an API server that does not
 * answer. It does not use a watch that ends after its list: that would need the right to watch, and retry forever.
 */
export async function readFleet<Node>(transport: KubeTransport, request: FleetRequest<Node>): Promise<FleetView<Node>> {
  const { namespace, clock, signal, nodeOf, isMetadataEnough } = request
  const collections = fleetCollections(namespace)
  const read = readerOf(transport, signal)
  const [skyhooks, policies, nodes, leases, agents, daemonSets, settings] = await Promise.all([
    read(collections.skyhooks),
    read(collections.policies),
    read(nodesAs(nodeOf, isMetadataEnough)),
    read(collections.leases),
    read(collections.agents),
    read(collections.daemonSets),
    read(collections.settings),
  ])
  return {
    takenAtMs: clock.wallMs(),
    namespace,
    skyhooks,
    policies,
    nodes,
    ...heldLeases(leases),
    agents,
    daemonSet: mapped(daemonSets, ([first]) => first),
    settings: firstSettings(settings, namespace),
  }
}

/** Sorts the Leases of a fleet. */
export const heldLeases = (
  leases: Known<readonly Lease[]>,
): Pick<FleetView<unknown>, 'slots' | 'ledgers' | 'strays'> => ({
  slots: mapped(leases, (all) => all.flatMap((lease) => readSlot(lease) ?? [])),
  ledgers: mapped(leases, (all) => all.filter(isLedger)),
  strays: mapped(leases, (all) => all.filter(isStray)),
})

function firstSettings(found: Known<readonly FleetSettings[]>, namespace: string): Known<FleetSettings> {
  if (!found.known) return found
  const [first] = found.value
  return first ? known(first) : unknown(`no ConfigMap in namespace ${namespace} has settings`)
}
