/**
 * At most one node of the control plane is taken out of service at a time, regardless of Skyhooks and budgets. Such a
 * node needs a second slot from before its cordon until it is back in service.
 *
 * This cannot deadlock: a node that waits for the control plane's slot may hold the Skyhook's, but a node that holds
 * the control plane's slot never waits for a Skyhook's. It gives the control plane's slot back.
 */
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { Journal, StaticPod } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { someOf } from '../../schemas/wording.ts'
import type { DrainStatus } from '../drain/drain-status.ts'
import { cordonState, hasCordon } from '../drain/drain.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { isMirrorPod, isReadyPod, type Pod, type PodWatch } from '../model/pods.ts'
import { isControlPlaneNode, type OwnSlot, type Snapshot } from '../model/snapshot.ts'
import { bestSlot, createRecoverySlot, isOwned, isRequestDue, renewWhenDue } from './slot.ts'

export const controlPlaneSlot = ({ slots }: Snapshot): OwnSlot | undefined =>
  slots.known ? bestSlot(slots.value.filter(({ scope }) => scope === 'control-plane')) : undefined

/** The control plane allows that this node is taken out of service now, and that it is interrupted. */
export function mayLeaveControlPlane(snapshot: Snapshot): boolean {
  if (!isControlPlaneNode(snapshot.node)) return true
  const slot = controlPlaneSlot(snapshot)
  return slot !== undefined && isOwned(slot) && areStaticPodsRecorded(snapshot)
}

/** What started work currently needs of the control plane. */
export type ControlPlaneNeed =
  | 'nothing'
  /** The node is in service, and its cordon comes next: it waits for the slot. */
  | 'before-cordon'
  /**
   * It is not known yet whether pods block the cordon, or the node lost the label while it is out of service: the node
   * keeps its slot if it has one, and requests none.
   */
  | 'while-held'
  /** The node is out of service already: its capacity is gone with or without a slot. */
  | 'out-of-service'

export function controlPlaneNeed({ snapshot, view, record }: PlanBuilder, drain: DrainStatus): ControlPlaneNeed {
  const isOut = hasCordon(snapshot, view.metadata.name) || record.interrupt !== undefined
  if (!isControlPlaneNode(snapshot.node)) return isOut ? 'while-held' : 'nothing'
  if (isOut) return 'out-of-service'
  if (drain.drain === 'blocked') return drain.reason === undefined ? 'while-held' : 'nothing'
  return drain.drain === 'waiting' || drain.drain === 'draining' ? 'before-cordon' : 'nothing'
}

/** Keeps the slot, creates it again, or requests it where the work may start to wait for it. */
export function keepControlPlaneSlot(
  builder: PlanBuilder,
  { need, mayAsk }: { readonly need: ControlPlaneNeed; readonly mayAsk: boolean },
  phase: SlotPhase,
): void {
  const { snapshot, view, actions } = builder
  if (need === 'nothing' || !snapshot.slots.known) return
  builder.usesControlPlane = true
  const key = `control-plane/${view.metadata.name}`
  const slot = controlPlaneSlot(snapshot)
  if (slot) renewWhenDue(builder, key, slot, phase)
  else if (need === 'out-of-service') createRecoverySlot(builder, { key, scope: 'control-plane', phase })
  else if (need === 'before-cordon' && mayAsk && isRequestDue(builder))
    actions.push({ do: 'acquireControlPlaneSlot', key, view, phase })
}

/** Why the node is not taken out of service yet. */
export function waitingForControlPlane({ snapshot, view }: PlanBuilder): Reason {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (controlPlaneSlot(snapshot) !== undefined && !areStaticPodsRecorded(snapshot))
    return { reason: 'WaitingForSlot', message: 'recording the static pods of this node' }
  const message = denial?.waitsFor === 'control-plane' ? denial.message : "requesting the control plane's slot"
  return { reason: 'WaitingForSlot', message }
}

/**
 * Static pods of a control-plane node, such as etcd and kube-apiserver. The kubelet starts them by itself after a boot,
 * and reports the node Ready before they are. The next node of the control plane waits for them, even if the Skyhook is
 * gone: with two members down at once, etcd loses its quorum.
 */

/** How long to wait for a pod that the API server no longer has: someone may have removed its manifest. */
const maxAbsentMs = 300_000
const maxNames = 3

type StaticPodWait = {
  /** What the journal keeps from now on. */
  readonly staticPods: Journal['staticPods']
  /** Pods that were Ready are not known to be Ready again: the node keeps the control plane's slot. */
  readonly areMissing: boolean
  readonly watchPods: PodWatch
  /** When a wait for a pod that is absent ends by itself. */
  readonly recheckAtMs: number
}

/**
 * The Ready pods, before anything takes the node down, since a host may crash at any time: after a boot, the API server
 * still shows the pods of before as Ready. Once the node was down, those of them that are not back. `skyhooks`: the
 * decisions for Skyhooks.
 */
export function followStaticPods(snapshot: Snapshot, { skyhooks }: Pick<Journal, 'skyhooks'>): StaticPodWait {
  const { node, journal, nowMs } = snapshot
  const before = journal.staticPods
  const isFollowed = isControlPlaneNode(node) && Object.keys(skyhooks).length > 0
  const missing = missingStaticPods(snapshot)
  const isInterrupting = hasInterrupt(skyhooks)
  const kept = isInterrupting ? (before?.pods ?? []) : mayBeOut(snapshot) ? missing : notReported(snapshot, missing)
  const pods = isFollowed ? withReady(snapshot, kept) : kept
  const watch = { areMissing: missing.length > 0, watchPods: isFollowed || pods.length > 0 ? 'any' : 'no' } as const
  if (pods.length === 0) return { ...watch, staticPods: undefined, recheckAtMs: Infinity }
  if (isInterrupting || kept.length === 0) return { ...watch, staticPods: { pods }, recheckAtMs: Infinity }
  const sinceMs = before?.sinceMs ?? nowMs
  return {
    ...watch,
    staticPods: { pods, sinceMs },
    recheckAtMs: sinceMs + maxAbsentMs > nowMs ? sinceMs + maxAbsentMs : Infinity,
  }
}

const hasInterrupt = (skyhooks: Journal['skyhooks']): boolean =>
  Object.values(skyhooks).some(({ interrupt }) => interrupt !== undefined)

const isOut = ({ node, journal }: Snapshot): boolean =>
  cordonState(node).marks.size > 0 || hasInterrupt(journal.skyhooks)

/** Otherwise the node does not wait for a pod that fails: it failed before any work. */
const mayBeOut = (snapshot: Snapshot): boolean =>
  isOut(snapshot) || !snapshot.slots.known || snapshot.slots.value.some(({ scope }) => scope === 'control-plane')

/** Whether the journal has each Ready pod: the node waits for them even if the host crashes. */
function areStaticPodsRecorded(snapshot: Snapshot): boolean {
  if (isOut(snapshot)) return true
  const recorded = new Set(snapshot.journal.staticPods?.pods.map(keyOf))
  const shown = shownStaticPods(snapshot)
  return shown !== undefined && [...shown].every(([key, pod]) => !isReadyPod(pod) || recorded.has(key))
}

function withReady(snapshot: Snapshot, before: readonly StaticPod[]): readonly StaticPod[] {
  const { node, bootId } = snapshot
  const all = new Map(before.map((pod) => [keyOf(pod), pod]))
  for (const [key, pod] of shownStaticPods(snapshot) ?? []) {
    const known = all.get(key)
    if (!isReadyPod(pod) || (known && isOld(known, pod, bootId))) continue
    all.set(key, { ...manifestOf(pod, node), bootId, containerIds: containersOf(pod) })
  }
  return [...all.values()]
}

/** The pods that were Ready before and are not known to be Ready again. */
function missingStaticPods(snapshot: Snapshot): readonly StaticPod[] {
  const { pods = [] } = snapshot.journal.staticPods ?? {}
  const shown = shownStaticPods(snapshot)
  if (shown === undefined) return pods
  const absent = new Set(notReported(snapshot, pods))
  return pods.filter((before) => {
    const pod = shown.get(keyOf(before))
    return absent.has(before) || (pod !== undefined && !isReadyPod(pod))
  })
}

/** Those of which the kubelet has not reported anything since the last boot, or since someone removed them. */
function notReported(snapshot: Snapshot, pods: readonly StaticPod[]): readonly StaticPod[] {
  const { journal, bootId, nowMs } = snapshot
  const shown = shownStaticPods(snapshot)
  if (shown === undefined) return pods
  const absentUntilMs = (journal.staticPods?.sinceMs ?? nowMs) + maxAbsentMs
  return pods.filter((before) => {
    const pod = shown.get(keyOf(before))
    return pod === undefined ? nowMs < absentUntilMs : isOld(before, pod, bootId)
  })
}

/** By name in the manifest; undefined while the pods are not known. */
function shownStaticPods({ node, pods }: Snapshot): ReadonlyMap<string, Pod> | undefined {
  if (!pods.known) return undefined
  return new Map(pods.value.pods.filter(isMirrorPod).map((pod) => [keyOf(manifestOf(pod, node)), pod]))
}

/** The API server's state is from an earlier boot until the kubelet reports containers of this one. */
const isOld = (before: StaticPod, pod: Pod, bootId: string): boolean =>
  before.bootId !== bootId && containersOf(pod).some((id) => before.containerIds.includes(id))

/** Why the node may not go back to service yet: pods that an interrupt stopped do not run again. */
export function staticPodsReason(snapshot: Snapshot): Reason | undefined {
  const missing = missingStaticPods(snapshot)
  if (missing.length === 0) return undefined
  const names = someOf(missing.map(keyOf), maxNames)
  return { reason: 'NodeNotReady', message: `waiting for static pods to be Ready: ${names}` }
}

const keyOf = ({ namespace, name }: Pick<StaticPod, 'namespace' | 'name'>): string => `${namespace}/${name}`

/** Its name in the manifest: the kubelet appends the name of the Node, which may register under another one. */
const manifestOf = (
  { metadata: { namespace, name } }: Pod,
  node: KubernetesNode,
): Pick<StaticPod, 'namespace' | 'name'> => ({
  namespace,
  name: name.endsWith(`-${node.metadata.name}`) ? name.slice(0, -node.metadata.name.length - 1) : name,
})

const containersOf = ({ status }: Pod): string[] =>
  (status?.containerStatuses ?? []).flatMap(({ containerID }) => containerID ?? [])
