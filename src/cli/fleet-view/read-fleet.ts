import { listAll, type ListOptions } from '../../kube/list.ts'
import { type KubeObject, metadataOnlyListAccept } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { labelKeys } from '../../lease/names.ts'
import { leasesPathOf } from '../../lease/slot-reads.ts'
import { isLedger, isStray, readSlot, type Lease } from '../../lease/slot.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { DeploymentPolicy } from '../../schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'
import type { FleetView } from './fleet-view.ts'
import { agentPodOf, daemonSetOf, type DaemonSetObject, type PodObject, slimSkyhook } from './project.ts'
import { readable } from './readable.ts'
import { type ConfigMapObject, settingsOf } from './settings.ts'

/** Of the agents' pods and their DaemonSet, as the chart labels them. */
export const agentSelector = 'app.kubernetes.io/name=skyhookd'
/** Nodes are large: a page of them is parsed as a whole. */
const nodePageSize = 50

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
 * Reads everything that a view of the fleet needs, in consistent LISTs by pages. Slots and ledgers come from one LIST:
 * what one says of the other is of one moment. Throws for an API server that does not answer.
 */
export async function readFleet<Node>(transport: KubeTransport, request: FleetRequest<Node>): Promise<FleetView<Node>> {
  const { namespace, clock, signal } = request
  const list = <T extends KubeObject, U>(what: string, path: string, options: ListOptions<T, U>): Promise<Known<U[]>> =>
    readable(
      what,
      listAll<T, U>(transport, path, { ...options, signal }).then(({ items }) => [...items]),
    )
  const inNamespace = `in namespace ${namespace}`
  const podsOfAgents = { query: { labelSelector: agentSelector } }
  const [skyhooks, policies, nodes, leases, agents, daemonSets, settings] = await Promise.all([
    list<Skyhook, Skyhook>('Skyhooks', skyhooksPath, { transform: slimSkyhook }),
    list<DeploymentPolicy, DeploymentPolicy>('DeploymentPolicies', policiesPath, { transform: slimPolicy }),
    readNodes(transport, request),
    list<Lease, Lease>(`Leases ${inNamespace}`, leasesPathOf({ namespace }), {
      query: { labelSelector: labelKeys.slotKind },
      transform: slimLease,
    }),
    list(`Pods ${inNamespace}`, `/api/v1/namespaces/${namespace}/pods`, {
      ...podsOfAgents,
      transform: (pod: PodObject) => agentPodOf(pod),
    }),
    list(`DaemonSets ${inNamespace}`, `/apis/apps/v1/namespaces/${namespace}/daemonsets`, {
      ...podsOfAgents,
      transform: (daemonSet: DaemonSetObject) => daemonSetOf(daemonSet),
    }),
    list(`ConfigMaps ${inNamespace}`, `/api/v1/namespaces/${namespace}/configmaps`, {
      ...podsOfAgents,
      transform: (configMap: ConfigMapObject) => settingsOf(configMap),
    }),
  ])
  const found = settings.known ? settings.value.find((one) => one !== undefined) : undefined
  return {
    takenAtMs: clock.wallMs(),
    namespace,
    skyhooks,
    policies,
    nodes,
    slots: leases.known ? known(leases.value.flatMap((lease) => readSlot(lease) ?? [])) : leases,
    ledgers: leases.known ? known(leases.value.filter(isLedger)) : leases,
    strays: leases.known ? known(leases.value.filter(isStray)) : leases,
    agents,
    daemonSet: daemonSets.known ? known(daemonSets.value[0]) : daemonSets,
    settings: found ? known(found) : settings.known ? unknown(`no ConfigMap ${inNamespace} has settings`) : settings,
  }
}

/** The Nodes of a fleet view, in one consistent LIST by pages. Throws for an API server that does not answer. */
export const readNodes = async <Node>(
  transport: KubeTransport,
  { nodeOf, isMetadataEnough, signal }: Pick<FleetRequest<Node>, 'nodeOf' | 'isMetadataEnough' | 'signal'>,
): Promise<Known<Node[]>> =>
  await readable(
    'Nodes',
    listAll<KubernetesNode & KubeObject, Node>(transport, '/api/v1/nodes', {
      transform: nodeOf,
      pageSize: nodePageSize,
      signal,
      ...(isMetadataEnough === true && { accept: metadataOnlyListAccept }),
    }).then(({ items }) => [...items]),
  )

const slimPolicy = ({ metadata, spec }: DeploymentPolicy): DeploymentPolicy => ({ metadata, spec })

export function slimLease({ metadata, spec }: Lease): Lease {
  const { name, uid, resourceVersion, labels, annotations, ownerReferences } = metadata
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(ownerReferences && { ownerReferences }),
    },
    ...(spec && { spec }),
  }
}
