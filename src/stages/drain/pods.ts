import { isEmptySelector, selects, tolerates } from '../../schemas/selectors.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { packagePodState, skyhookOfPackagePod } from '../model/package-pods.ts'
import { isMirrorPod, type Pod } from '../model/pods.ts'

export type PodGroups = {
  /** Must end by themselves (podNonInterruptLabels): they count regardless of their owner and are never evicted. */
  readonly protected: readonly Pod[]
  /** Have to go before the node is empty; those already terminating among them are only waited for. */
  readonly toDrain: readonly Pod[]
  /** Have to go as well, and are not evicted: they tolerate the cordon, so another one may come in their place. */
  readonly waited: readonly Pod[]
  /** Tolerate the cordon, and end with the interrupt. */
  readonly left: readonly Pod[]
}

/** What of a Skyhook's spec says which pods have to go. */
export type DrainRules = Pick<SkyhookSpec, 'podNonInterruptLabels' | 'drain'>

export type DrainFacts = {
  readonly skipNamespaces: readonly string[]
  /** Whether the agent evicted a pod of the same owner in this drain, and this one came after it. */
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
 * It would come back at once, so no pod is evicted twice: what came back is waited for, and left where the spec says
 * that an eviction is enough.
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

/** Of all pods, whoever owns them, that have to go before the node is empty. */
export const podsInTheWay = ({ protected: kept, toDrain, waited }: PodGroups): readonly Pod[] => [
  ...kept,
  ...toDrain,
  ...waited,
]

/** A package pod of the Skyhook operator that changes the host: nobody knows what it would leave half done. */
export const isOperatorAtWork = (pod: Pod): boolean =>
  skyhookOfPackagePod(pod) !== undefined && packagePodState(pod) !== 'ended'

/** The scheduler puts it on a cordoned node, too. */
export const toleratesCordon = ({ spec }: Pod): boolean => tolerates(spec?.tolerations ?? [], unschedulableTaint)

/** Somebody meant it to stay on cordoned nodes: it does not only tolerate every taint there is. */
const namesCordon = ({ spec }: Pod): boolean =>
  tolerates(
    (spec?.tolerations ?? []).filter(({ key }) => key === unschedulableTaint.key),
    unschedulableTaint,
  )

/** What is lost with it is work, not a replica. */
const runsToCompletion = ({ metadata, spec }: Pod): boolean =>
  controllerOf(metadata)?.kind === 'Job' || (spec?.restartPolicy ?? 'Always') !== 'Always'

/** Those who come in each other's place have it in common: their controller, or their name where they have none. */
export const ownerKeyOf = ({ metadata }: Pod): string =>
  controllerOf(metadata)?.uid ?? `${metadata.namespace}/${metadata.generateName ?? metadata.name}`

const controllerOf = ({ ownerReferences = [] }: Pod['metadata']) =>
  ownerReferences.find(({ controller }) => controller === true)

const isFinished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'

const isOutOfReach = (pod: Pod, skipNamespaces: readonly string[]): boolean =>
  isMirrorPod(pod) ||
  controllerOf(pod.metadata)?.kind === 'DaemonSet' ||
  skipNamespaces.includes(pod.metadata.namespace)
