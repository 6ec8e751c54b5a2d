/**
 * Static pods of a control-plane node, such as etcd and kube-apiserver. The kubelet starts them by itself after a boot,
 * and reports the node Ready before they are. The next node of the control plane waits for them, whatever became of the
 * Skyhook meanwhile: with two members down at once, etcd loses its quorum.
 */
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { Journal, StaticPod } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { someOf } from '../../schemas/wording.ts'
import { cordonState } from '../drain/drain.ts'
import { isControlPlaneNode } from '../model/node-roles.ts'
import { isMirrorPod, isReadyPod, type Pod } from '../model/pods.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** One that the API server shows no more is waited for this long: somebody may have removed its manifest. */
const maxAbsentMs = 300_000
const maxNames = 3

export type StaticPodWait = {
  /** What the journal remembers from now on. */
  readonly staticPods: Journal['staticPods']
  /** When a wait for a pod that is absent ends by itself. */
  readonly recheckAtMs: number
}

/**
 * While the node is out of service: those that are Ready. Afterwards: those of them that are not back. `after`: what
 * was decided for Skyhooks.
 */
export function followStaticPods(snapshot: Snapshot, { skyhooks }: Pick<Journal, 'skyhooks'>): StaticPodWait {
  const { node, journal, nowMs } = snapshot
  const before = journal.staticPods
  const isInterrupting = Object.values(skyhooks).some(({ interrupt }) => interrupt !== undefined)
  // whoever reboots it meanwhile
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

/** Those that were Ready before, and are not Ready again, as far as anybody knows. */
function missingStaticPods({ journal, node, pods, bootId, nowMs }: Snapshot): readonly StaticPod[] {
  const { pods: expected = [], sinceMs = nowMs } = journal.staticPods ?? {}
  if (!pods.known || expected.length === 0) return expected
  const shown = new Map(pods.value.pods.filter(isMirrorPod).map((pod) => [keyOf(manifestOf(pod, node)), pod]))
  return expected.filter((before) => {
    const pod = shown.get(keyOf(before))
    return pod === undefined ? nowMs < sinceMs + maxAbsentMs : isOld(before, pod, bootId) || !isReadyPod(pod)
  })
}

/** What the API server shows is of an earlier boot until the kubelet reports containers of this one. */
const isOld = (before: StaticPod, pod: Pod, bootId: string): boolean =>
  before.bootId !== bootId && containersOf(pod).some((id) => before.containerIds.includes(id))

/** Why the node may not go back to service yet: what an interrupt stopped does not run again. */
export function staticPodsReason(snapshot: Snapshot): Reason | undefined {
  const missing = missingStaticPods(snapshot)
  if (missing.length === 0) return undefined
  const names = someOf(missing.map(keyOf), maxNames)
  return { reason: 'NodeNotReady', message: `waiting for static pods to be Ready: ${names}` }
}

const keyOf = ({ namespace, name }: Pick<StaticPod, 'namespace' | 'name'>): string => `${namespace}/${name}`

/** As its manifest names it: the kubelet adds the name of the Node, which may register under another one. */
const manifestOf = (
  { metadata: { namespace, name } }: Pod,
  node: KubernetesNode,
): Pick<StaticPod, 'namespace' | 'name'> => ({
  namespace,
  name: name.endsWith(`-${node.metadata.name}`) ? name.slice(0, -node.metadata.name.length - 1) : name,
})

const containersOf = ({ status }: Pod): string[] =>
  (status?.containerStatuses ?? []).flatMap(({ containerID }) => containerID ?? [])
