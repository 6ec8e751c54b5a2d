/**
 * Static pods of a control-plane node, such as etcd and kube-apiserver. The kubelet starts them by itself after a boot,
 * and reports the node Ready before they are. The next node of the control plane waits for them: with two members
 * down at once, etcd loses its quorum.
 */
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { StaticPod } from '../../schemas/journal.ts'
import { isControlPlaneNode } from '../model/node-roles.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import { isMirrorPod, isReadyPod, type Pod } from '../model/pods.ts'

/** One that the API server shows no more is waited for this long: somebody may have removed its manifest. */
const maxAbsentMs = 300_000
const maxNames = 3

const nameOf = ({ namespace, name }: Pick<StaticPod, 'namespace' | 'name'>): string => `${namespace}/${name}`

const containersOf = ({ status }: Pod): string[] =>
  (status?.containerStatuses ?? []).flatMap(({ containerID }) => containerID ?? [])

/** Before an interrupt: which static pods are Ready, beside those that have not come back from an earlier one. */
export function recordStaticPods(builder: PlanBuilder): void {
  const { record, snapshot } = builder
  const { lifecycle } = record
  if (!lifecycle || !isControlPlaneNode(snapshot.node) || !snapshot.pods.known) return
  const ready = snapshot.pods.value.pods.filter((pod) => isMirrorPod(pod) && isReadyPod(pod))
  const found = ready.map((pod): StaticPod => {
    const { namespace, name } = pod.metadata
    return { namespace, name, containerIds: containersOf(pod) }
  })
  const all = new Map([...(lifecycle.staticPods?.pods ?? []), ...found].map((pod) => [nameOf(pod), pod]))
  if (all.size === 0) return
  const staticPods = { bootId: snapshot.bootId, pods: [...all.values()] }
  builder.record = { ...record, lifecycle: { ...lifecycle, staticPods } }
}

export const awaitsStaticPods = ({ record }: PlanBuilder): boolean =>
  record.lifecycle?.interruptedAtMs !== undefined && record.lifecycle.staticPods !== undefined

/** Why the node may not go back to service yet: what the interrupt stopped does not run again. */
export function staticPodsReason(builder: PlanBuilder): Reason | undefined {
  const { snapshot, record } = builder
  const { staticPods, interruptedAtMs } = record.lifecycle ?? {}
  if (staticPods === undefined || interruptedAtMs === undefined) return undefined
  if (!snapshot.pods.known) return notReady('its static pods are not known yet')
  const shown = new Map(snapshot.pods.value.pods.filter(isMirrorPod).map((pod) => [nameOf(pod.metadata), pod]))
  const hasBooted = snapshot.bootId !== staticPods.bootId
  const absentUntilMs = interruptedAtMs + maxAbsentMs
  const missing = staticPods.pods.filter((before) => {
    const pod = shown.get(nameOf(before))
    if (pod === undefined) return snapshot.nowMs < absentUntilMs
    // what the API server shows is of before the boot until the kubelet reports containers of this one
    const isStale = hasBooted && containersOf(pod).some((id) => before.containerIds.includes(id))
    return isStale || !isReadyPod(pod)
  })
  if (missing.length === 0) return undefined
  if (snapshot.nowMs < absentUntilMs) requeueAt(builder, absentUntilMs)
  const names = missing.slice(0, maxNames).map(nameOf).join(', ')
  return notReady(`waiting for static pods to be Ready: ${names}${missing.length > maxNames ? ', …' : ''}`)
}

const notReady = (message: string): Reason => ({ reason: 'NodeNotReady', message })
