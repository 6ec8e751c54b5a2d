import { cordonKey, cordonedBeforeKey, keepCordonedKey } from '../../schemas/annotations.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SkyhookSpec, SlotPhase } from '../../schemas/skyhook.ts'
import type { CordonState } from './node-spec.ts'
import { perObject } from '../../schemas/per-object.ts'
import type { DrainReason, Pod, PodWatch } from '../model/pods.ts'
import { isEmptySelector } from '../../schemas/selectors.ts'
import { someOf } from '../../schemas/wording.ts'
import type { Eviction, NodeCount, SkyhookView, Snapshot } from '../model/snapshot.ts'
import {
  countsSinceMs,
  type DrainFacts,
  drainFacts,
  groupPods,
  isAlone,
  isOperatorAtWork,
  type PodGroups,
  podsInTheWay,
} from './pods.ts'

/** How far the node is out of service for one Skyhook. */
export type Disruption = {
  /** The cordon is ours and visible, and no pod is left that must go. */
  readonly isDrained: boolean
  /** Our mark is on the Node, or must be. */
  readonly isMarked: boolean
  readonly phase?: SlotPhase
  readonly reason?: DrainReason
  /** Pods to evict now through the Eviction API. */
  readonly evict: readonly Pod[]
  /** Pods that are not evicted, and that `onTimeout: delete` may end. */
  readonly waited: readonly Pod[]
  /** From when on the pods of this node must be watched. */
  readonly watchPods: PodWatch
  /** Ask again then, for evictions that were refused. */
  readonly recheckAtMs: number
}

/** Limit of concurrent evictions on one node; more only makes the replacements wait for each other. */
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

/** The state of the drain. Pods count only after the cordon is visible: before, new pods may join the listed ones. */
export function disruptionOf(snapshot: Snapshot, skyhook: string, spec: SkyhookSpec): Disruption {
  const isMarked = hasCordon(snapshot, skyhook)
  const none: Disruption = { isDrained: false, isMarked, evict: [], waited: [], watchPods: 'no', recheckAtMs: Infinity }
  const isVisible = hasMark(snapshot.node, skyhook) && snapshot.node.spec?.unschedulable === true
  if (!isVisible) return { ...none, phase: 'cordoning' }
  if (!snapshot.pods.known || snapshot.pods.value.since !== 'cordoned')
    return { ...none, watchPods: 'cordoned', phase: 'draining' }

  const groups = groupPods(snapshot.pods.value.pods, spec, drainFacts(snapshot, skyhook))
  if (groups.protected.length > 0)
    return { ...none, watchPods: 'cordoned', phase: 'protected-pods', reason: protectedReason(groups.protected) }
  const isEmpty = podsInTheWay(groups).length === 0
  if (isEmpty || isAlone(spec, snapshot.nodeCount, countsSinceMs(snapshot.journal, skyhook)))
    return { ...none, isDrained: true, watchPods: 'cordoned' }
  return { ...none, watchPods: 'cordoned', phase: 'draining', ...evictionsDue(snapshot, groups, spec) }
}

/** Pods of the cordoned node that the interrupt will end; none while its pods are not known. */
export function leftPods(
  snapshot: Snapshot,
  { metadata, spec }: Pick<SkyhookView, 'metadata' | 'spec'>,
): readonly Pod[] {
  if (!snapshot.pods.known) return []
  return groupPods(snapshot.pods.value.pods, spec, drainFacts(snapshot, metadata.name)).left
}

/** A pod on the node that forbids an interrupt now. `nodeCount`: the current one. */
export function blockingPod(
  pods: readonly Pod[],
  spec: SkyhookSpec,
  { nodeCount, ...facts }: DrainFacts & { readonly nodeCount: NodeCount | undefined },
): Pod | undefined {
  const groups = groupPods(pods, spec, facts)
  return groups.protected[0] ?? (isAlone(spec, nodeCount, 0) ? undefined : podsInTheWay(groups)[0])
}

/** Current protected pods, for a Skyhook that cordons only when none is left. */
export function protectedPodsBlocker(snapshot: Snapshot, spec: SkyhookSpec): DrainReason | 'none' | 'unknown' {
  if (!mayPodsBlock(spec)) return 'none'
  if (!snapshot.pods.known) return 'unknown'
  const found = groupPods(snapshot.pods.value.pods, spec, snapshot.settings).protected
  return found.length === 0 ? 'none' : protectedReason(found)
}

/** The pods must be known before the cordon. */
export const mayPodsBlock = ({ drain, podNonInterruptLabels }: SkyhookSpec): boolean =>
  drain?.cordon === 'late' && !isEmptySelector(podNonInterruptLabels)

function protectedReason(pods: readonly Pod[]): DrainReason {
  return {
    reason: 'ProtectedPods',
    message: `waiting for ${formatPodNames(pods)} to end: protected by podNonInterruptLabels`,
  }
}

type EvictionsDue = Pick<Disruption, 'evict' | 'waited' | 'recheckAtMs'> & { readonly reason: DrainReason }

function evictionsDue(snapshot: Snapshot, groups: PodGroups, spec: SkyhookSpec): EvictionsDue {
  const { toDrain, waited } = groups
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
  const blocked = drainBlockedMessage(remaining, groups, evictionOf, spec)
  return {
    evict,
    waited: waited.filter((pod) => !isTerminating(pod)),
    reason: { reason: 'DrainBlocked', message: blocked },
    recheckAtMs,
  }
}

/** The first refused eviction with the server's reason, else the pods that are still ending, else those waited for. */
function drainBlockedMessage(
  remaining: readonly Pod[],
  { toDrain, waited, left }: PodGroups,
  evictionOf: (pod: Pod) => Eviction | undefined,
  { drain }: SkyhookSpec,
): string {
  for (const pod of remaining) {
    const eviction = evictionOf(pod)
    if (eviction?.state === 'blocked') return `pod ${podName(pod)} (${eviction.message})`
  }
  const staying = left.length === 0 ? '' : `; ${leftText(left)}`
  if (toDrain.length > 0) return `waiting for ${formatPodNames(toDrain)} to end${staying}`
  const why = waited.every(isOperatorAtWork) ? 'the operator is at work in it' : waitedWhy[drain?.tolerating ?? 'unset']
  return `waiting for ${formatPodNames(waited)} to end: ${why}${staying}`
}

/** Why the agent waits for pods and does not evict them, by the spec's rule for pods that tolerate the cordon. */
const waitedWhy = {
  wait: 'spec.drain.tolerating is wait',
  evict: 'evicted once, another one runs to completion on the cordoned node, which it tolerates',
  leave: '',
  unset:
    'evicted once, another one came to the cordoned node, which it tolerates; ' +
    'spec.drain.tolerating: leave lets the interrupt end it',
} as const

/** Parses the reason of a blocked drain: the pods, as namespace/name, that replaced evicted ones. */
export function readCameBack(reason: string): ReadonlySet<string> {
  const [, names = ''] = /^waiting for (.+) to end: evicted once/.exec(reason) ?? []
  return new Set(names.split(', '))
}

/** The part of a reason, before the interrupt, about the pods that it will end. */
export const leftText = (left: readonly Pod[]): string =>
  `${formatPodNames(left)} ${left.length === 1 ? 'tolerates' : 'tolerate'} the cordon and ` +
  `${left.length === 1 ? 'ends' : 'end'} with the interrupt`

const podName = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const byName = (a: Pod, b: Pod): number => (podName(a) < podName(b) ? -1 : 1)

const formatPodNames = (pods: readonly Pod[]): string => someOf(pods.map(podName).sort(), maxNames)
