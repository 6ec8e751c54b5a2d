import type { KubeTransport } from '../../kube/transport.ts'
import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import { agentSelector } from '../connection/agent-namespace.ts'
import { matchNames, unmatchedPatterns } from '../objects/nodes.ts'

export type AgentPod = {
  readonly metadata: ObjectMeta
  readonly spec: { readonly nodeName?: string }
  readonly status?: { readonly containerStatuses?: readonly ContainerStatus[] }
}

type ContainerStatus = { readonly name: string; readonly restartCount?: number }

/** The container of a pod that has the agent's log. */
export const agentContainer = 'agent'

export const podsPathIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`

/** The agents' pods by node; where one is replaced, the one that stays. */
export async function agentPods(
  transport: KubeTransport,
  podsPath: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentPod>> {
  const query = { labelSelector: agentSelector }
  const { items = [] } = await transport.json<{ readonly items?: readonly AgentPod[] }>('GET', podsPath, {
    query,
    signal,
  })
  const inOrder = [...items].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  return new Map(inOrder.flatMap((pod) => (pod.spec.nodeName === undefined ? [] : [[pod.spec.nodeName, pod]])))
}

/** Of the agents' nodes, those that the patterns select, and the patterns that select none. Without patterns, all. */
export function selectNodes(
  pods: ReadonlyMap<string, AgentPod>,
  patterns: readonly string[] | undefined,
): { readonly nodes: readonly string[]; readonly unmatched: readonly string[] } {
  const names = [...pods.keys()].sort()
  if (patterns === undefined) return { nodes: names, unmatched: [] }
  return { nodes: matchNames(patterns, names), unmatched: unmatchedPatterns(patterns, names) }
}

/** How often the container was started again in its pod. */
export const restartsOf = ({ status }: AgentPod): number =>
  status?.containerStatuses?.find(({ name }) => name === agentContainer)?.restartCount ?? 0

/** Those that stay come last, and the newest of them. */
const orderOf = ({ metadata }: AgentPod): string =>
  `${metadata.deletionTimestamp === undefined ? 1 : 0} ${metadata.creationTimestamp ?? ''}`
