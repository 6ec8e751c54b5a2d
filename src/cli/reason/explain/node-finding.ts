/** Whether the node itself is alive: without its kubelet, the status of its pods is old, also that of its agent. */
import type { Slot } from '../../../lease/slot.ts'
import { labelKeys } from '../../../lease/names.ts'
import { reasonKey, skyhooksWith, journalKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode, NodeCondition } from '../../../schemas/kubernetes.ts'
import { publishedOf } from '../../../schemas/published.ts'
import { formatTime } from '../../../schemas/time.ts'
import { silentAfterMs } from '../../../stages/skyhook/gates.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import type { Vitals } from '../../fleet/fleet-view/vitals.ts'
import type { Finding } from './finding.ts'

export type NodesView = Pick<FleetView<KubernetesNode>, 'slots' | 'takenAtMs'>

const readyOf = ({ status }: KubernetesNode): NodeCondition | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')

/** Undefined for a node that is Ready, or has no such condition, and whose kubelet renews its Lease. */
export function nodeFinding(
  fleet: NodesView,
  node: KubernetesNode,
  heartbeats: Vitals['heartbeats'],
): Finding | undefined {
  const ready = readyOf(node)
  const { name } = node.metadata
  if (ready === undefined || ready.status === 'True') return silentKubelet(node, heartbeats)
  const sinceMs = timeOf(ready.lastTransitionTime)
  const reasonText = [ready.message, ready.reason].find((text) => text !== undefined && text !== '')
  const since = sinceMs === undefined ? '' : ` since ${formatTime(sinceMs)}`
  const message = `node ${name} is NotReady${since}${reasonText === undefined ? '' : `: ${reasonText}`}`
  if (ready.status === 'False')
    return {
      ...ofNode(name, sinceMs),
      message,
      unblock: 'fix on the host what its kubelet reports; the agent continues by itself',
      command: `kubectl describe node ${name}`,
    }
  const kubeletHeardMs = heartbeats.known ? heartbeats.value.get(name) : undefined
  return { ...ofNode(name, sinceMs), message, ...remedyOf(fleet, node, { sinceMs, kubeletHeardMs }) }
}

const ofNode = (name: string, sinceMs: number | undefined) =>
  ({ gate: 'agent', cause: 'node-not-ready', objects: [{ kind: 'Node', name }], sinceMs }) as const

const timeOf = (text: string | undefined): number | undefined => {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

type Silence = { readonly sinceMs: number | undefined; readonly kubeletHeardMs: number | undefined }

/**
 * The agent does not need a kubelet: if it has written since, the host and its network are fine. A Node becomes
 * NotReady up to a minute after the last sign of its kubelet: an agent whose next renewal is due has outlived the
 * kubelet, too.
 */
function remedyOf(
  fleet: NodesView,
  node: KubernetesNode,
  { sinceMs = Infinity, kubeletHeardMs = Infinity }: Silence,
): Pick<Finding, 'unblock' | 'command'> {
  const { name } = node.metadata
  const heardMs = agentHeardMs(fleet, node)
  if (heardMs > Math.min(sinceMs, kubeletHeardMs + silentKubeletMs))
    return {
      unblock:
        `start the kubelet of ${name}: its host outlived it, its agent has written at ${formatTime(heardMs)} and ` +
        'continues without it',
      command: 'systemctl status kubelet # on the host',
    }
  return {
    unblock:
      `start the host of ${name}, its network or its kubelet: all three are silent. The agent then continues ` +
      'by itself; delete the Node only if the host is gone for good',
    command: `kubectl describe node ${name}`,
  }
}

/** When the agent has renewed a slot or published a reason, by the clock of its host; -Infinity: never. */
function agentHeardMs({ slots }: NodesView, node: KubernetesNode): number {
  const renewals = slotsHeldBy(slots, node).map(({ lease }) => Date.parse(lease.spec?.renewTime ?? ''))
  const statements = skyhooksWith(reasonKey, node.metadata.annotations).map(
    (skyhook) => publishedOf(node, skyhook).reason?.sinceMs ?? Number.NaN,
  )
  return Math.max(-Infinity, ...[...renewals, ...statements].filter((ms) => !Number.isNaN(ms)))
}

const slotsHeldBy = (slots: NodesView['slots'], { metadata }: KubernetesNode): readonly Slot[] =>
  valueOr(slots, []).filter(({ holder }) => holder === metadata.name)

/** Kubelets renew every 10 s: two renewals are missing. */
const silentKubeletMs = 20_000

/** The API server has not noticed yet. Kubelets are compared with each other: the local clock may differ. */
function silentKubelet({ metadata: { name } }: KubernetesNode, heartbeats: Vitals['heartbeats']): Finding | undefined {
  if (!heartbeats.known) return undefined
  const heardMs = heartbeats.value.get(name)
  if (heardMs === undefined) return undefined
  const newestMs = Math.max(...heartbeats.value.values())
  if (newestMs - heardMs < silentKubeletMs) return undefined
  return {
    ...ofNode(name, heardMs),
    message:
      `the kubelet of node ${name} has not renewed its Lease since ${formatTime(heardMs)}, and those of other nodes ` +
      'renew theirs every 10 s',
    unblock: `check whether the host of ${name}, its network and its kubelet run: the Node becomes NotReady soon`,
    command: `kubectl -n kube-node-lease get lease ${name} -o yaml`,
  }
}

/**
 * The host is going through a reboot for a package, and is silent. Undefined once it should be back. `silentSinceMs`:
 * since when its agent, or its kubelet, is silent.
 */
export function rebootFinding(
  { slots, takenAtMs }: NodesView,
  node: KubernetesNode,
  silentSinceMs: number | undefined,
): Finding | undefined {
  const { name } = node.metadata
  const rebooting = slotsHeldBy(slots, node).find(({ phase }) => phase === 'rebooting')
  const skyhook = rebooting?.lease.metadata.labels?.[labelKeys.name] ?? askedFor(node)
  if (skyhook === undefined || takenAtMs - (silentSinceMs ?? takenAtMs) >= silentAfterMs) return undefined
  return {
    gate: 'interrupt',
    cause: 'reboot-pending',
    message: `node ${name} reboots for Skyhook ${skyhook}`,
    objects: [{ kind: 'Node', name }],
    sinceMs: silentSinceMs,
    unblock: 'wait: its agent continues when the host is back',
    command: `kubectl get node ${name} -w`,
  }
}

/** The Skyhook for which a reboot was requested in this boot. */
function askedFor(node: KubernetesNode): string | undefined {
  const bootId = node.status?.nodeInfo?.bootID
  return skyhooksWith(journalKey, node.metadata.annotations).find((skyhook) =>
    Object.values(publishedOf(node, skyhook).companion?.reboots ?? {}).some(
      ({ askedInBoot }) => askedInBoot !== undefined && askedInBoot === bootId,
    ),
  )
}
