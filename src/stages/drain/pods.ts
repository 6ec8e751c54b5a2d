import type { LabelSelector } from '../../schemas/kubernetes.ts'
import { isEmptySelector, selects, tolerates } from '../../schemas/selectors.ts'
import { isMirrorPod, type Pod } from '../model/pods.ts'

export type PodGroups = {
  /** Must end by themselves (podNonInterruptLabels): they count regardless of their owner and are never evicted. */
  readonly protected: readonly Pod[]
  /** Have to go before the node is empty; those already terminating among them are only waited for. */
  readonly toDrain: readonly Pod[]
}

const unschedulableTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

/**
 * Sorts the pods of a node for one Skyhook (design: cordon and drain). Left alone: finished and mirror pods, pods of
 * DaemonSets, pods that tolerate the cordon (they would come back at once), and namespaces that are never drained.
 */
export function groupPods(
  pods: readonly Pod[],
  nonInterrupt: LabelSelector | undefined,
  skipNamespaces: readonly string[],
): PodGroups {
  const running = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
  const isProtected = (pod: Pod): boolean =>
    !isEmptySelector(nonInterrupt) && selects(nonInterrupt, pod.metadata.labels ?? {})
  return {
    protected: running.filter(isProtected),
    toDrain: running.filter((pod) => !isProtected(pod) && isEvictable(pod, skipNamespaces)),
  }
}

function isEvictable(pod: Pod, skipNamespaces: readonly string[]): boolean {
  const { metadata, spec } = pod
  if (isMirrorPod(pod)) return false
  if (metadata.ownerReferences?.some(({ kind, controller }) => kind === 'DaemonSet' && controller === true))
    return false
  if (skipNamespaces.includes(metadata.namespace)) return false
  return !tolerates(spec?.tolerations ?? [], unschedulableTaint)
}
