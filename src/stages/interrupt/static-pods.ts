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
import { isMirrorPod, isReadyPod, type Pod } from '../model/pods.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** How long to wait for a pod that the API server no longer has: someone may have removed its manifest. */
const maxAbsentMs = 300_000
const maxNames = 3

export type StaticPodWait = {
  /** What the journal keeps from now on. */
  readonly staticPods: Journal['staticPods']
  /** When a wait for a pod that is absent ends by itself. */
  readonly recheckAtMs: number
}

/**
 * While the node is out of service: the Ready pods. Afterwards: those of them that are not back. `after`: the decisions
 * for Skyhooks.
 */
export function followStaticPods(snapshot: Snapshot, { skyhooks }: Pick<Journal, 'skyhooks'>): StaticPodWait {
  const { node, journal, nowMs } = snapshot
  const before = journal.staticPods
  const isInterrupting = Object.values(skyhooks).some(({ interrupt }) => interrupt !== undefined)
  // for any reboot meanwhile
  const isOut = isControlPlaneNode(node) && (isInterrupting || cordonState(node).marks.size > 0)
  const missing = missingStaticPods(snapshot)
  const kept = isInterrupting ? (before?.pods ?? []) : missing
  const pods = isOut ? withReady(snapshot, kept) : missing
  if (pods.length === 0) return { staticPods: undefined, recheckAtMs: Infinity }
  if (isInterrupting || missing.length === 0) return { staticPods: { pods }, recheckAtMs: Infinity }
  const sinceMs = before?.sinceMs ?? nowMs
  return {
    staticPods: { pods, sinceMs },
    recheckAtMs: sinceMs + maxAbsentMs > nowMs ? sinceMs + maxAbsentMs : Infinity,
  }
}

function withReady({ node, pods, bootId }: Snapshot, before: readonly StaticPod[]): readonly StaticPod[] {
  const all = new Map(before.map((pod) => [keyOf(pod), pod]))
  for (const pod of pods.known ? pods.value.pods.filter(isMirrorPod) : []) {
    const manifest = manifestOf(pod, node)
    const known = all.get(keyOf(manifest))
    if (!isReadyPod(pod) || (known && isOld(known, pod, bootId))) continue
    all.set(keyOf(manifest), { ...manifest, bootId, containerIds: containersOf(pod) })
  }
  return [...all.values()]
}

/** The pods that were Ready before and are not known to be Ready again. */
function missingStaticPods({ journal, node, pods, bootId, nowMs }: Snapshot): readonly StaticPod[] {
  const { pods: expected = [], sinceMs = nowMs } = journal.staticPods ?? {}
  if (!pods.known || expected.length === 0) return expected
  const shown = new Map(pods.value.pods.filter(isMirrorPod).map((pod) => [keyOf(manifestOf(pod, node)), pod]))
  return expected.filter((before) => {
    const pod = shown.get(keyOf(before))
    return pod === undefined ? nowMs < sinceMs + maxAbsentMs : isOld(before, pod, bootId) || !isReadyPod(pod)
  })
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
