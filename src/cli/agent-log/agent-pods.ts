import type { KubeTransport } from '../../kube/transport.ts'
import { listCollection } from '../fleet-view/collection.ts'
import { fleetCollections } from '../fleet-view/collections.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'
import { matchNames, unmatchedPatterns } from '../objects/nodes.ts'

/** The agents' pods by node; if one is being replaced, the one that stays. Throws the errors of the transport. */
export async function agentPods(
  transport: KubeTransport,
  namespace: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentPod>> {
  const pods = await listCollection(transport, fleetCollections(namespace).agents, signal)
  const inOrder = pods.filter(({ node }) => node !== '').toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  return new Map(inOrder.map((pod) => [pod.node, pod]))
}

/** The agents' nodes that the patterns select, and the patterns that select none. Without patterns, all nodes. */
export function selectNodes(
  pods: ReadonlyMap<string, AgentPod>,
  patterns: readonly string[] | undefined,
): { readonly nodes: readonly string[]; readonly unmatched: readonly string[] } {
  const names = [...pods.keys()].sort()
  if (patterns === undefined) return { nodes: names, unmatched: [] }
  return { nodes: matchNames(patterns, names), unmatched: unmatchedPatterns(patterns, names) }
}

/** Those that stay come last, and the newest of them. */
const orderOf = ({ isDeleting, createdAt }: AgentPod): string => `${isDeleting ? 0 : 1} ${createdAt}`
