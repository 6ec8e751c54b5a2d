import type { Journal, Lifecycle } from '../../schemas/journal.ts'
import { ownValue } from '../../schemas/json.ts'
import { isEmptySelector, selects, tolerates } from '../../schemas/selectors.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { isFinished, isMirrorPod, type Pod, packagePodState, skyhookOfPackagePod } from '../model/pods.ts'
import type { EvictedOwner, NodeCount, Snapshot } from '../model/snapshot.ts'

export type PodGroups = {
  /**
   * Pods that must end by themselves (podNonInterruptLabels): they count regardless of their owner and are never
   * evicted.
   */
  readonly protected: readonly Pod[]
  /** Pods that must go before the node is empty; the agent only waits for those already terminating. */
  readonly toDrain: readonly Pod[]
  /** Pods that must go as well, but are not evicted: they tolerate the cordon, so another one may replace them. */
  readonly waited: readonly Pod[]
  /** Pods that tolerate the cordon and end with the interrupt. */
  readonly left: readonly Pod[]
}

/** The part of a Skyhook's spec that decides which pods must go. */
export type DrainRules = Pick<SkyhookSpec, 'podNonInterruptLabels' | 'drain'>

export type DrainFacts = {
  readonly skipNamespaces: readonly string[]
  /** Whether the agent evicted a pod of the same owner in this drain before this one came. */
  readonly cameBack?: (pod: Pod) => boolean
}

const unschedulableTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

/**
 * Sorts the pods of a node for one Skyhook (design: drains). In no group: finished and mirror pods, pods of DaemonSets,
 * and namespaces that are never drained.
 */
export function groupPods(
  pods: readonly Pod[],
  { podNonInterruptLabels, drain }: DrainRules,
  { skipNamespaces, cameBack = () => false }: DrainFacts,
): PodGroups {
  const groups: Record<keyof PodGroups, Pod[]> = { protected: [], toDrain: [], waited: [], left: [] }
  for (const pod of pods) {
    const group = isFinished(pod)
      ? undefined
      : !isEmptySelector(podNonInterruptLabels) && selects(podNonInterruptLabels, pod.metadata.labels ?? {})
        ? 'protected'
        : isOutOfReach(pod, skipNamespaces)
          ? undefined
          : toleratesCordon(pod)
            ? groupOfTolerating(pod, drain?.tolerating, cameBack(pod))
            : 'toDrain'
    if (group !== undefined) groups[group].push(pod)
  }
  return groups
}

type Tolerating = NonNullable<SkyhookSpec['drain']>['tolerating']

/**
 * An evicted pod would come back at once, so none is evicted twice. The agent waits for a pod that came back, or leaves
 * it if an eviction is enough by the spec.
 */
function groupOfTolerating(pod: Pod, tolerating: Tolerating, hasComeBack: boolean): 'toDrain' | 'waited' | 'left' {
  switch (tolerating) {
    case 'leave':
      return 'left'
    case 'wait':
      return 'waited'
    case 'evict':
      if (isOperatorAtWork(pod)) return 'waited'
      return !hasComeBack ? 'toDrain' : runsToCompletion(pod) ? 'waited' : 'left'
    case undefined:
      if (isOperatorAtWork(pod)) return 'waited'
      if (namesCordon(pod) && !runsToCompletion(pod)) return 'left'
      return hasComeBack ? 'waited' : 'toDrain'
  }
}

/** All pods that must go before the node is empty, regardless of their owner. */
export const podsInTheWay = ({ protected: kept, toDrain, waited }: PodGroups): readonly Pod[] => [
  ...kept,
  ...toDrain,
  ...waited,
]

/** A package pod of the Skyhook operator that changes the host: an eviction might leave the host half changed. */
export const isOperatorAtWork = (pod: Pod): boolean =>
  skyhookOfPackagePod(pod) !== undefined && packagePodState(pod) !== 'ended'

/** The scheduler puts it on a cordoned node, too. */
export const toleratesCordon = ({ spec }: Pod): boolean => tolerates(spec?.tolerations ?? [], unschedulableTaint)

/** It is meant to stay on cordoned nodes: it does not just tolerate every taint. */
const namesCordon = ({ spec }: Pod): boolean =>
  tolerates(
    (spec?.tolerations ?? []).filter(({ key }) => key === unschedulableTaint.key),
    unschedulableTaint,
  )

/** Its eviction loses work, not a replica. */
const runsToCompletion = ({ metadata, spec }: Pod): boolean =>
  controllerOf(metadata)?.kind === 'Job' || (spec?.restartPolicy ?? 'Always') !== 'Always'

/** Pods that replace each other share it: their controller, or their name if they have none. */
export const ownerKeyOf = ({ metadata }: Pod): string =>
  controllerOf(metadata)?.uid ?? `${metadata.namespace}/${metadata.generateName ?? metadata.name}`

const controllerOf = ({ ownerReferences = [] }: Pod['metadata']) =>
  ownerReferences.find(({ controller }) => controller === true)

const isOutOfReach = (pod: Pod, skipNamespaces: readonly string[]): boolean =>
  isMirrorPod(pod) ||
  controllerOf(pod.metadata)?.kind === 'DaemonSet' ||
  skipNamespaces.includes(pod.metadata.namespace)

/** What the agent knows in addition to the pods: what it evicted, and how many nodes there are. */

/** A node that waits for pods counts the nodes again: the cluster may have shrunk to this one. */
const countLastsMs = 60_000

/** Of the current work of the Skyhook on this node: pods evicted for earlier work may be evicted again. */
export function drainFacts(
  {
    settings,
    journal,
    evictedOwners,
  }: Pick<Snapshot, 'journal' | 'evictedOwners'> & {
    readonly settings: { readonly skipNamespaces: readonly string[] }
  },
  skyhook: string,
): DrainFacts {
  const lifecycle = lifecycleOf(journal, skyhook)
  const { skipNamespaces } = settings
  return { skipNamespaces, cameBack: (pod) => hasComeBack(pod, evictedOwners, lifecycle) }
}

function hasComeBack(
  pod: Pod,
  evictedOwners: ReadonlyMap<string, EvictedOwner>,
  lifecycle: Lifecycle | undefined,
): boolean {
  const owner = evictedOwners.get(ownerKeyOf(pod))
  if (owner === undefined || lifecycle === undefined || owner.atMs < lifecycle.startedAtMs) return false
  return !owner.uids.has(pod.metadata.uid)
}

const lifecycleOf = ({ skyhooks }: Journal, skyhook: string): Lifecycle | undefined =>
  ownValue(skyhooks, skyhook)?.lifecycle

/**
 * Evicted pods could not be scheduled elsewhere: counted since this work started, at the latest right before the
 * interrupt.
 */
export const isAlone = (
  { drain }: Pick<SkyhookSpec, 'drain'>,
  count: NodeCount | undefined,
  sinceMs: number,
): boolean => drain?.singleNode === 'skip' && count?.isSingle === true && count.atMs >= sinceMs

/** Since when a count belongs to this drain. */
export const countsSinceMs = (journal: Journal, skyhook: string): number =>
  lifecycleOf(journal, skyhook)?.startedAtMs ?? Infinity

/** When the nodes must be counted before pods are evicted; undefined where the spec does not require it. */
export function countDueAtMs(
  { drain }: Pick<SkyhookSpec, 'drain'>,
  { nodeCount, journal, nowMs }: Pick<Snapshot, 'nodeCount' | 'journal' | 'nowMs'>,
  skyhook: string,
): number | undefined {
  if (drain?.singleNode !== 'skip') return undefined
  if (nodeCount === undefined || nodeCount.atMs < countsSinceMs(journal, skyhook)) return nowMs
  return nodeCount.atMs + countLastsMs
}
