/** The collections of a fleet: the path of each, and what is kept of its objects. */
import { labelKeys } from '../../lease/names.ts'
import { leasesPathOf } from '../../lease/slot-reads.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Collection } from './collection.ts'
import { agentPodOf, daemonSetOf, slimLease, slimNode, slimPolicy, slimSkyhook } from './project.ts'
import { settingsOf } from './settings.ts'

/** The chart gives it to the agents' DaemonSet, its pods and its settings; it is not a setting. */
export const agentSelector = 'app.kubernetes.io/name=skyhookd'

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
