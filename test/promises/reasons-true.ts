/** Whether what a Node says about its waiting agrees with the simulated world, for the reasons that can be checked. */
import {
  disableKey,
  ignoreLabel,
  pauseKey,
  reasonKey,
  statusKey,
  type PublishedReason,
} from '../../src/schemas/annotations.ts'
import { parseJson } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { packagesToUninstall, type Skyhook } from '../../src/schemas/skyhook.ts'
import type { Host, World } from './facts.ts'
import {
  allowedOfJoining,
  allowedNow,
  isOfControlPlane,
  isSelected,
  isSlotOf,
  nodeOf,
  podsInTheWay,
  skyhooksOf,
  slotsOf,
} from './cluster.ts'
import { isProtected } from './may-end.ts'

export function reasonOf(node: KubernetesNode | undefined, skyhook: string): PublishedReason | undefined {
  const text = node?.metadata.annotations?.[reasonKey(skyhook)]
  return text === undefined ? undefined : (parseJson(text) as PublishedReason | undefined)
}

/** Why the reason is not true, in words; undefined: it is true, or nobody can tell. */
export function whyUntrue(
  world: World,
  view: Host,
  skyhook: Skyhook,
  { reason, message }: PublishedReason,
): string | undefined {
  const node = nodeOf(world, view)
  const { metadata } = skyhook
  const annotations = metadata.annotations ?? {}
  switch (reason) {
    case 'Paused':
      return annotations[pauseKey] === 'true' ? undefined : 'the Skyhook is not paused'
    case 'Disabled':
      return annotations[disableKey] === 'true' ? undefined : 'the Skyhook is not disabled'
    case 'Ignored':
      return node?.metadata.labels?.[ignoreLabel] === 'true' ? undefined : 'the Node does not carry the ignore label'
    case 'WaitingForSlot':
      return whyNotWaitingForSlot(world, view, skyhook, message)
    case 'WaitingForPriority':
      return skyhooksOf(world).some(
        (other) =>
          other.metadata.name !== metadata.name &&
          isSelected(other, node) &&
          node?.metadata.annotations?.[statusKey(other.metadata.name)] !== 'complete',
      )
        ? undefined
        : 'every other Skyhook is complete on the node'
    case 'DrainBlocked':
      return podsInTheWay(world, view, skyhook).some((pod) => !isProtected(pod, skyhook.spec))
        ? undefined
        : 'no pod is left to drain'
    case 'ProtectedPods':
      return podsInTheWay(world, view, skyhook).some((pod) => isProtected(pod, skyhook.spec))
        ? undefined
        : 'no protected pod runs on the node'
    case 'NodeNotReady':
      return isReady(node, view) ? 'the node has been Ready since this boot' : undefined
    case 'TaintNotTolerated':
      return (node?.spec?.taints ?? []).length > 0 ? undefined : 'the node has no taint'
    default:
      return undefined
  }
}

/** Slots that are taken, a budget that lets nobody start, or one that nobody can compute. */
function whyNotWaitingForSlot(world: World, view: Host, skyhook: Skyhook, message: string): string | undefined {
  if (message.includes('to add its finalizer')) return whyFinalizerIsNotMissing(skyhook)
  const { deploymentPolicy, interruptionBudget = {} } = skyhook.spec
  if (deploymentPolicy) return undefined // the slots of its own compartment
  const hasOwn = 'count' in interruptionBudget || 'percent' in interruptionBudget
  if (!hasOwn && world.plan.defaultBudget !== undefined) return undefined // by whatever its agent was started with
  const isForJoining = message.includes(' joining node')
  const allowed = (isForJoining ? allowedOfJoining : allowedNow)(world, skyhook)
  const isDenied = message.startsWith('the API server rejected') || message.startsWith('the slot was deleted')
  if (allowed === 'unknown' || allowed === 0 || isDenied) return undefined
  const slots = slotsOf(world).filter(({ holder }) => holder !== view.nodeName())
  if (slots.some(isOfControlPlane)) return undefined
  const counted = slots.filter(({ kind }) => (kind === 'bootstrap') === isForJoining)
  const held = counted.filter((slot) => isSlotOf(slot, skyhook.metadata.name)).length
  const needed = allowed === 'unlimited' ? Infinity : allowed
  return held >= needed ? undefined : `${held} of ${needed} slots are held by other nodes`
}

const whyFinalizerIsNotMissing = ({ metadata, spec }: Skyhook): string | undefined =>
  packagesToUninstall(spec).size > 0 && (metadata.finalizers ?? []).length === 0
    ? undefined
    : 'the Skyhook has its finalizer, or needs none'

function isReady(node: KubernetesNode | undefined, view: Host): boolean {
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && node?.status?.nodeInfo?.bootID === view.host.bootId()
}
