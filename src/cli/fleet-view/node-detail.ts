/** What is read of one Node beyond the fleet view: its pods, the budgets that guard them, and Events about it. */
import { listAll } from '../../kube/list.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { LabelSelector } from '../../schemas/kubernetes.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import type { Pod } from '../../stages/model/pods.ts'
import { readable } from './readable.ts'

export type NodeDetail = {
  readonly pods: Known<readonly Pod[]>
  readonly budgets: Known<readonly DisruptionBudget[]>
  /** Of the Node, the newest first; the API server forgets them after an hour. */
  readonly events: Known<readonly NodeEvent[]>
}

export type DisruptionBudget = {
  readonly namespace: string
  readonly name: string
  /** Absent: it selects no pod. */
  readonly selector: LabelSelector | undefined
  readonly disruptionsAllowed: number
  readonly currentHealthy: number
  readonly desiredHealthy: number
  readonly expectedPods: number
}

export type NodeEvent = {
  readonly reason: string
  readonly message: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly atMs: number
}

type EventObject = KubeObject & {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
  readonly reason?: string
  readonly message?: string
  readonly firstTimestamp?: string
  readonly lastTimestamp?: string
}

type BudgetObject = KubeObject & {
  readonly spec?: { readonly selector?: LabelSelector }
  readonly status?: Partial<Omit<DisruptionBudget, 'namespace' | 'name' | 'selector'>>
}

/** Throws for an API server that does not answer. */
export async function readNodeDetail(
  transport: KubeTransport,
  nodeName: string,
  signal?: AbortSignal,
): Promise<NodeDetail> {
  const [pods, budgets, events] = await Promise.all([
    readable(
      'Pods of all namespaces',
      listAll<Pod & KubeObject, Pod>(transport, '/api/v1/pods', {
        query: { fieldSelector: `spec.nodeName=${nodeName}` },
        transform: slimPod,
        signal,
      }).then(({ items }) => items),
    ),
    readable('PodDisruptionBudgets', readBudgets(transport, signal)),
    readable('Events in namespace default', listEvents(transport, `,involvedObject.name=${nodeName}`, signal)),
  ])
  return { pods, budgets, events: events.known ? known(newestFirst(events.value)) : events }
}

/** Pods of these nodes and all budgets: one LIST for each of a few nodes, one of all pods where they are many. */
export async function readPodsOf(
  transport: KubeTransport,
  nodeNames: readonly string[],
  signal?: AbortSignal,
): Promise<Pick<NodeDetail, 'pods' | 'budgets'>> {
  const isFew = nodeNames.length <= maxPodLists
  const selectors = isFew ? nodeNames.map((name) => `spec.nodeName=${name}`) : [undefined]
  const requested = new Set(nodeNames)
  const lists = selectors.map(async (fieldSelector) => {
    const { items } = await listAll<Pod & KubeObject, Pod | undefined>(transport, '/api/v1/pods', {
      query: { ...(fieldSelector !== undefined && { fieldSelector }) },
      // pods of other nodes are not kept: a fleet has many
      transform: (pod) => (requested.has(pod.spec?.nodeName ?? '') ? slimPod(pod) : undefined),
      signal,
    })
    return items.flatMap((pod) => pod ?? [])
  })
  const [pods, budgets] = await Promise.all([
    readable(
      'Pods of all namespaces',
      Promise.all(lists).then((found) => found.flat()),
    ),
    readable('PodDisruptionBudgets', readBudgets(transport, signal)),
  ])
  return { pods, budgets }
}

const maxPodLists = 10

/** Events about all Nodes in one LIST. Returns what is known of one. */
export async function readNodeEvents(
  transport: KubeTransport,
  signal?: AbortSignal,
): Promise<(nodeName: string) => NodeDetail['events']> {
  const events = await readable('Events in namespace default', listEvents(transport, '', signal))
  if (!events.known) return () => events
  const byNode = Map.groupBy(events.value, ({ node }) => node)
  return (nodeName) => known(newestFirst(byNode.get(nodeName) ?? []))
}

const listEvents = async (
  transport: KubeTransport,
  selector: string,
  signal: AbortSignal | undefined,
): Promise<readonly (NodeEvent & { readonly node: string })[]> => {
  const { items } = await listAll<EventObject, NodeEvent & { readonly node: string }>(
    transport,
    '/api/v1/namespaces/default/events',
    {
      query: { fieldSelector: `involvedObject.kind=Node${selector}` },
      transform: (event) => ({ ...eventOf(event), node: event.involvedObject?.name ?? '' }),
      signal,
    },
  )
  return items
}

const newestFirst = (events: readonly NodeEvent[]): readonly NodeEvent[] => events.toSorted((a, b) => b.atMs - a.atMs)

const readBudgets = async (
  transport: KubeTransport,
  signal: AbortSignal | undefined,
): Promise<readonly DisruptionBudget[]> => {
  const { items } = await listAll<BudgetObject, DisruptionBudget>(transport, '/apis/policy/v1/poddisruptionbudgets', {
    transform: budgetOf,
    signal,
  })
  return items
}

const budgetOf = ({ metadata, spec, status = {} }: BudgetObject): DisruptionBudget => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name,
  selector: spec?.selector,
  disruptionsAllowed: status.disruptionsAllowed ?? 0,
  currentHealthy: status.currentHealthy ?? 0,
  desiredHealthy: status.desiredHealthy ?? 0,
  expectedPods: status.expectedPods ?? 0,
})

/** A pod with what a drain asks of it. */
export function slimPod({ metadata, spec, status }: Pod): Pod {
  const mirror = 'kubernetes.io/config.mirror'
  const { [mirror]: mirrored } = metadata.annotations ?? {}
  return {
    metadata: { ...metadata, annotations: mirrored === undefined ? {} : { [mirror]: mirrored } },
    spec: {
      ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
      tolerations: spec?.tolerations ?? [],
    },
    status: {
      ...(status?.phase !== undefined && { phase: status.phase }),
      conditions: (status?.conditions ?? []).filter(({ type }) => type === 'Ready'),
    },
  }
}

function eventOf({ reason = '', message = '', lastTimestamp, firstTimestamp, metadata }: EventObject): NodeEvent {
  const atMs = Date.parse(lastTimestamp ?? firstTimestamp ?? metadata.creationTimestamp ?? '')
  const { annotations } = metadata
  return { reason, message, ...(annotations && { annotations }), atMs: Number.isNaN(atMs) ? 0 : atMs }
}
