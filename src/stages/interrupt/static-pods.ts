/**
 * Static pods of a control-plane node, such as etcd and kube-apiserver. The kubelet starts them by itself after a boot,
 * and reports the node Ready before they are. The next node of the control plane waits for them, even if the Skyhook is
 * gone: with two members down at once, etcd loses its quorum.
 */
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { Journal, StaticPod } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { someOf } from '../../schemas/wording.ts'
import { cordonState } from '../drain/drain.ts'
import { isControlPlaneNode } from '../model/node-roles.ts'
import { isMirrorPod, isReadyPod, type Pod, type PodWatch } from '../model/pods.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** How long to wait for a pod that the API server no longer has: someone may have removed its manifest. */
const maxAbsentMs = 300_000
const maxNames = 3

export type StaticPodWait = {
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
export function areStaticPodsRecorded(snapshot: Snapshot): boolean {
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
