import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { type PackagePodState, packagePodState, skyhookOfPackagePod } from '../model/package-pods.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { Pod } from '../model/pods.ts'

/**
 * Whether package pods of the Skyhook operator may be on this node: its work on some Skyhook was found unfinished, and
 * no agent has started there since. Until then, nothing starts unless the pods of the node are known.
 */
export const mayHavePackagePods = ({ snapshot, record }: PlanBuilder): boolean =>
  record.adopted === true || Object.values(snapshot.journal.skyhooks).some(({ adopted }) => adopted === true)

const remedies: Readonly<Record<PackagePodState, string>> = {
  running: 'is at work: wait until it has ended, then delete it',
  failing: 'fails again and again: delete it',
  ended: 'has nothing left to do: delete it, because the kubelet runs it again after a reboot',
}

/**
 * Nothing starts while there is a package pod, because it changes the same host. An ended one would run again after the
 * next boot, including its interrupt, unless the pod itself is finished.
 */
export function packagePodGate(builder: PlanBuilder): Reason | undefined {
  if (!mayHavePackagePods(builder)) return undefined
  const { pods } = builder.snapshot
  if (!pods.known) return { reason: 'Takeover', message: `looking for package pods of the operator: ${pods.why}` }
  const found = pods.value.pods.filter((pod) => skyhookOfPackagePod(pod) !== undefined && !isOver(pod))
  const pod = found.toSorted((a, b) => rank(a) - rank(b) || (nameOf(a) < nameOf(b) ? -1 : 1))[0]
  if (pod === undefined) return undefined
  const others = found.length === 1 ? '' : ` (and ${found.length - 1} more on this node)`
  return {
    reason: 'Takeover',
    message: `package pod ${nameOf(pod)} of the operator ${remedies[packagePodState(pod)]}${others}`,
  }
}

const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'
const nameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const rank = (pod: Pod): number => Object.keys(remedies).indexOf(packagePodState(pod))
