import { cordonKey, cordonedBeforeKey, keepCordonedKey } from '../../schemas/annotations.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SkyhookSpec, SlotPhase } from '../../schemas/skyhook.ts'
import type { CordonState } from './cordon-ownership.ts'
import { groupPods } from './pods.ts'
import { perObject } from '../../schemas/per-object.ts'
import type { DrainReason, Pod, PodWatch } from '../model/pods.ts'
import { isEmptySelector } from '../../schemas/selectors.ts'
import type { Eviction, Snapshot } from '../model/snapshot.ts'

/** How far the node is out of service for one Skyhook. */
export type Disruption = {
  /** The cordon is ours and visible, and nothing is left that would have to go. */
  readonly isDrained: boolean
  /** Our mark is on the Node, or belongs there. */
  readonly isMarked: boolean
  readonly phase?: SlotPhase
  readonly reason?: DrainReason
  /** Pods to ask the Eviction API for now. */
  readonly evict: readonly Pod[]
  /** From when the pods of this node have to be followed. */
  readonly watchPods: PodWatch
  /** Ask again then, for evictions that were refused. */
  readonly recheckAtMs: number
}

/** At most so many evictions under way on one node; more only makes the replacements wait for each other. */
const maxEvictions = 10
const maxNames = 5
const cordonMarkPrefix = cordonKey('')

/** The mark of the Skyhook is on the Node. */
export const hasMark = ({ metadata }: KubernetesNode, skyhook: string): boolean =>
  metadata.annotations?.[cordonKey(skyhook)] === 'true'

/** The node is out of service for the Skyhook: by its mark, or by the journal where the Node lost the mark alone. */
export const hasCordon = ({ node, journal }: Pick<Snapshot, 'node' | 'journal'>, skyhook: string): boolean =>
  hasMark(node, skyhook) || (node.spec?.unschedulable === true && journal.cordon?.skyhooks.includes(skyhook) === true)

export const cordonState: (node: KubernetesNode) => CordonState = perObject((node) => {
  const annotations = node.metadata.annotations ?? {}
  const before = annotations[cordonedBeforeKey]
  const marks = Object.entries(annotations).flatMap(([key, value]) =>
    key.startsWith(cordonMarkPrefix) && value === 'true' ? [key.slice(cordonMarkPrefix.length)] : [],
  )
  return {
    unschedulable: node.spec?.unschedulable === true,
    marks: new Set(marks),
    before: before === undefined ? undefined : before === 'true',
    keep: annotations[keepCordonedKey] === 'true',
  }
})

/**
 * Where draining stands. Pods are looked at only after the cordon is visible: what was listed before may be joined by
 * others.
 */
export function disruptionOf(snapshot: Snapshot, skyhook: string, spec: SkyhookSpec): Disruption {
  const isMarked = hasCordon(snapshot, skyhook)
  const none: Disruption = { isDrained: false, isMarked, evict: [], watchPods: 'no', recheckAtMs: Infinity }
  const isVisible = hasMark(snapshot.node, skyhook) && snapshot.node.spec?.unschedulable === true
  if (!isVisible) return { ...none, phase: 'cordoning' }
  if (!snapshot.pods.known || snapshot.pods.value.since !== 'cordoned')
    return { ...none, watchPods: 'cordoned', phase: 'draining' }

  const groups = groupPods(snapshot.pods.value.pods, spec.podNonInterruptLabels, snapshot.settings.skipNamespaces)
  if (groups.protected.length > 0)
    return { ...none, watchPods: 'cordoned', phase: 'protected-pods', reason: protectedReason(groups.protected) }
  if (groups.toDrain.length === 0 || isAlone(spec, snapshot.singleNode))
    return { ...none, isDrained: true, watchPods: 'cordoned' }
  return { ...none, watchPods: 'cordoned', phase: 'draining', ...evictionsDue(snapshot, groups.toDrain) }
}

/** Evicted pods would have nowhere to go. */
const isAlone = ({ drain }: SkyhookSpec, singleNode: boolean | undefined): boolean =>
  drain?.singleNode === 'skip' && singleNode === true

/** A pod, of those on the node now, beside which it must not be interrupted. */
export function blockingPod(
  pods: readonly Pod[],
  spec: SkyhookSpec,
  {
    skipNamespaces,
    singleNode,
  }: { readonly skipNamespaces: readonly string[]; readonly singleNode: boolean | undefined },
): Pod | undefined {
  const groups = groupPods(pods, spec.podNonInterruptLabels, skipNamespaces)
  return groups.protected[0] ?? (isAlone(spec, singleNode) ? undefined : groups.toDrain[0])
}

/** Protected pods of this moment, for a Skyhook that cordons only when none is left. */
export function protectedPodsBlocker(snapshot: Snapshot, spec: SkyhookSpec): DrainReason | 'none' | 'unknown' {
  if (!mayPodsBlock(spec)) return 'none'
  if (!snapshot.pods.known) return 'unknown'
  const found = groupPods(
    snapshot.pods.value.pods,
    spec.podNonInterruptLabels,
    snapshot.settings.skipNamespaces,
  ).protected
  return found.length === 0 ? 'none' : protectedReason(found)
}

/** The pods have to be known before the cordon. */
export const mayPodsBlock = ({ drain, podNonInterruptLabels }: SkyhookSpec): boolean =>
  drain?.cordon === 'late' && !isEmptySelector(podNonInterruptLabels)

function protectedReason(pods: readonly Pod[]): DrainReason {
  return {
    reason: 'ProtectedPods',
    message: `waiting for ${formatPodNames(pods)} to end: protected by podNonInterruptLabels`,
  }
}

function evictionsDue(
  snapshot: Snapshot,
  toDrain: readonly Pod[],
): { readonly evict: readonly Pod[]; readonly reason: DrainReason; readonly recheckAtMs: number } {
  const evictionOf = (pod: Pod): Eviction | undefined => snapshot.evictions.get(pod.metadata.uid)
  const isTerminating = (pod: Pod): boolean =>
    pod.metadata.deletionTimestamp !== undefined || evictionOf(pod)?.state === 'requested'
  const remaining = toDrain.filter((pod) => !isTerminating(pod)).sort(byName)
  const retryAtMs = (pod: Pod): number => {
    const eviction = evictionOf(pod)
    return eviction?.state === 'blocked' ? eviction.retryAtMs : snapshot.nowMs
  }
  const due = remaining.filter((pod) => retryAtMs(pod) <= snapshot.nowMs)
  const evict = due.slice(0, Math.max(0, maxEvictions - (toDrain.length - remaining.length)))
  const recheckAtMs = Math.min(...remaining.map(retryAtMs).filter((atMs) => atMs > snapshot.nowMs), Infinity)
  return {
    evict,
    reason: { reason: 'DrainBlocked', message: drainBlockedMessage(remaining, toDrain, evictionOf) },
    recheckAtMs,
  }
}

/** The first refused eviction with the server's reason, else the pods that are still ending. */
function drainBlockedMessage(
  remaining: readonly Pod[],
  toDrain: readonly Pod[],
  evictionOf: (pod: Pod) => Eviction | undefined,
): string {
  for (const pod of remaining) {
    const eviction = evictionOf(pod)
    if (eviction?.state === 'blocked') return `pod ${podName(pod)} (${eviction.message})`
  }
  return `waiting for ${formatPodNames(toDrain)} to end`
}

const podName = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const byName = (a: Pod, b: Pod): number => (podName(a) < podName(b) ? -1 : 1)

function formatPodNames(pods: readonly Pod[]): string {
  const names = pods.map(podName).sort()
  return names.length > maxNames ? `${names.slice(0, maxNames).join(', ')}, …` : names.join(', ')
}
