/** What is read of one Node beyond the fleet view: its pods, the budgets that protect them, and its Events. */
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import type { LabelSelector } from '../../../schemas/kubernetes.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import type { Pod } from '../../../stages/model/pods.ts'
import { type Collection, listCollection, readerOf } from './collections.ts'
import { mapped, readable } from './readable.ts'

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

const pods: Collection<Pod> = { what: 'Pods of all namespaces', path: '/api/v1/pods', keep: slimPod }

export const podsOn = (node: string): Collection<Pod> => ({
  ...pods,
  query: { fieldSelector: `spec.nodeName=${node}` },
})

export const budgets: Collection<DisruptionBudget> = {
  what: 'PodDisruptionBudgets',
  path: '/apis/policy/v1/poddisruptionbudgets',
  keep: budgetOf,
}

/** Of objects without a namespace, such as Nodes and Skyhooks. `terms`: more of a field selector. */
export const eventsAbout = (
  kind: 'Node' | 'Skyhook',
  terms = '',
): Collection<NodeEvent & { readonly node: string }> => ({
  what: 'Events in namespace default',
  path: '/api/v1/namespaces/default/events',
  query: { fieldSelector: `involvedObject.kind=${kind}${terms}` },
  keep: eventOf,
})

/** Throws for an API server that does not answer. */
export async function readNodeDetail(
  transport: KubeTransport,
  nodeName: string,
  signal?: AbortSignal,
): Promise<NodeDetail> {
  const read = readerOf(transport, signal)
  const [found, guards, events] = await Promise.all([
    read(podsOn(nodeName)),
    read(budgets),
    read(eventsAbout('Node', `,involvedObject.name=${nodeName}`)),
  ])
  return { pods: found, budgets: guards, events: mapped(events, newestFirst) }
}

/** Events about a Skyhook, the newest first. Throws for an API server that does not answer. */
export const readSkyhookEvents = async (
  transport: KubeTransport,
  name: string,
  signal?: AbortSignal,
): Promise<NodeDetail['events']> =>
  mapped(await readerOf(transport, signal)(eventsAbout('Skyhook', `,involvedObject.name=${name}`)), newestFirst)

/** Pods of these nodes and all budgets: one LIST for each of a few nodes, one of all pods where they are many. */
export async function readPodsOf(
  transport: KubeTransport,
  nodeNames: readonly string[],
  signal?: AbortSignal,
): Promise<Pick<NodeDetail, 'pods' | 'budgets'>> {
  const requested = new Set(nodeNames)
  // pods of other nodes are not kept: a fleet has many
  const keep = (pod: Pod): Pod | undefined => (requested.has(pod.spec?.nodeName ?? '') ? slimPod(pod) : undefined)
  const collections: readonly Collection<Pod>[] =
    nodeNames.length <= maxPodLists ? nodeNames.map(podsOn) : [{ ...pods, keep }]
  const lists = collections.map((collection) => listCollection(transport, collection, signal))
  const [found, guards] = await Promise.all([
    readable(
      pods.what,
      Promise.all(lists).then((all) => all.flat()),
    ),
    readerOf(transport, signal)(budgets),
  ])
  return { pods: found, budgets: guards }
}

const maxPodLists = 10

/** Lists the Events about all Nodes once. Returns those of one Node. */
export async function readNodeEvents(
  transport: KubeTransport,
  signal?: AbortSignal,
): Promise<(nodeName: string) => NodeDetail['events']> {
  const events = await readerOf(transport, signal)(eventsAbout('Node'))
  const byNode = mapped(events, (all) => Map.groupBy(all, ({ node }) => node))
  return (nodeName) => mapped(byNode, (all) => newestFirst(all.get(nodeName) ?? []))
}

const newestFirst = (events: readonly NodeEvent[]): readonly NodeEvent[] => events.toSorted((a, b) => b.atMs - a.atMs)

function budgetOf({ metadata, spec, status = {} }: BudgetObject): DisruptionBudget {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    selector: spec?.selector,
    disruptionsAllowed: status.disruptionsAllowed ?? 0,
    currentHealthy: status.currentHealthy ?? 0,
    desiredHealthy: status.desiredHealthy ?? 0,
    expectedPods: status.expectedPods ?? 0,
  }
}

/** The part of a pod that a drain needs: its identity, and whether it may leave. Without its containers. */
function slimPod({ metadata, spec, status }: Pod): Pod {
  const { name, generateName, namespace, uid, resourceVersion, labels, ownerReferences, deletionTimestamp } = metadata
  const mirror = 'kubernetes.io/config.mirror'
  const { [mirror]: mirrored } = metadata.annotations ?? {}
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      namespace,
      annotations: mirrored === undefined ? {} : { [mirror]: mirrored },
      ...(generateName !== undefined && { generateName }),
      ...(labels && { labels }),
      ...(ownerReferences && { ownerReferences }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
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

function eventOf(event: EventObject): NodeEvent & { readonly node: string } {
  const { reason = '', message = '', lastTimestamp, firstTimestamp, involvedObject, metadata } = event
  const atMs = Date.parse(lastTimestamp ?? firstTimestamp ?? metadata.creationTimestamp ?? '')
  const { annotations } = metadata
  return {
    node: involvedObject?.name ?? '',
    reason,
    message,
    ...(annotations && { annotations }),
    atMs: Number.isNaN(atMs) ? 0 : atMs,
  }
}
