import { cordonKey, cordonedBeforeKey, keepCordonedKey } from '../../schemas/annotations.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import type { CordonState } from './cordon-ownership.ts'
import { groupPods } from './pods.ts'
import type { Pod } from './pods.ts'
import { isEmptySelector } from '../../schemas/selectors.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { Eviction, World } from '../model/snapshot.ts'

/** Which pods matter: none, those of now, or those listed after our cordon became visible. */
export type PodWatch = 'no' | 'any' | 'cordoned'

export type DrainReason = { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }

/** How far the node is out of service for one Skyhook. */
export type Disruption = {
  /** The cordon is ours and visible, and nothing is left that would have to go. */
  readonly drained: boolean
  /** Our mark is on the Node. */
  readonly marked: boolean
  readonly phase?: SlotPhase
  readonly reason?: DrainReason
  /** Pods to ask the Eviction API for now. */
  readonly evict: readonly Pod[]
  /** From when the pods of this node have to be followed. */
  readonly watchPods: PodWatch
  /** Ask again then, for evictions that were refused. */
  readonly againAtMs: number
}

/** At most so many evictions under way on one node; more only makes the replacements wait for each other. */
const mostEvictions = 10
const mostNames = 5
const ourMark = cordonKey('')

export function cordonState(node: KubernetesNode): CordonState {
  const annotations = node.metadata.annotations ?? {}
  const before = annotations[cordonedBeforeKey]
  const marks = Object.entries(annotations).flatMap(([key, value]) =>
    key.startsWith(ourMark) && value === 'true' ? [key.slice(ourMark.length)] : [],
  )
  return {
    unschedulable: node.spec?.unschedulable === true,
    marks: new Set(marks),
    before: before === undefined ? undefined : before === 'true',
    keep: annotations[keepCordonedKey] === 'true',
  }
}

/** Where draining stands. Pods are looked at only after the cordon is visible: what was listed before may be joined by others. */
export function disruptionOf(world: World, skyhook: string, spec: SkyhookSpec): Disruption {
  const cordon = cordonState(world.node)
  const marked = cordon.marks.has(skyhook)
  const none: Disruption = { drained: false, marked, evict: [], watchPods: 'no', againAtMs: Number.POSITIVE_INFINITY }
  if (!marked || !cordon.unschedulable) return { ...none, phase: 'cordoning' }
  if (!world.pods.known || world.pods.value.since !== 'cordoned') return { ...none, watchPods: 'cordoned', phase: 'draining' }

  const groups = groupPods(world.pods.value.pods, spec.podNonInterruptLabels, world.settings.skipNamespaces)
  if (groups.protected.length > 0)
    return { ...none, watchPods: 'cordoned', phase: 'protected-pods', reason: protectedReason(groups.protected) }
  if (groups.toDrain.length === 0 || isAlone(spec, world.singleNode)) return { ...none, drained: true, watchPods: 'cordoned' }
  return { ...none, watchPods: 'cordoned', phase: 'draining', ...draining(world, groups.toDrain) }
}

/** Evicted pods would have nowhere to go. */
const isAlone = ({ drain }: SkyhookSpec, singleNode: boolean | undefined): boolean => drain?.singleNode === 'skip' && singleNode === true

/** A pod, of those on the node now, beside which it must not be interrupted. */
export function podInTheWay(
  pods: readonly Pod[],
  spec: SkyhookSpec,
  { skipNamespaces, singleNode }: { readonly skipNamespaces: readonly string[]; readonly singleNode: boolean | undefined },
): Pod | undefined {
  const groups = groupPods(pods, spec.podNonInterruptLabels, skipNamespaces)
  return groups.protected[0] ?? (isAlone(spec, singleNode) ? undefined : groups.toDrain[0])
}

/** Protected pods of this moment, for a Skyhook that cordons only when none is left. */
export function protectedNow(world: World, spec: SkyhookSpec): DrainReason | 'none' | 'unknown' {
  if (spec.drain?.cordon !== 'late' || isEmptySelector(spec.podNonInterruptLabels)) return 'none'
  if (!world.pods.known) return 'unknown'
  const found = groupPods(world.pods.value.pods, spec.podNonInterruptLabels, world.settings.skipNamespaces).protected
  return found.length === 0 ? 'none' : protectedReason(found)
}

function protectedReason(pods: readonly Pod[]): DrainReason {
  return { reason: 'ProtectedPods', message: `waiting for ${namesOf(pods)} to end: never interrupted by podNonInterruptLabels` }
}

function draining(
  world: World,
  toDrain: readonly Pod[],
): { readonly evict: readonly Pod[]; readonly reason: DrainReason; readonly againAtMs: number } {
  const evictionOf = (pod: Pod): Eviction | undefined => world.evictions.get(pod.metadata.uid)
  const isGoing = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || evictionOf(pod)?.state === 'asked'
  const staying = toDrain.filter((pod) => !isGoing(pod)).sort(byName)
  const retryAtMs = (pod: Pod): number => {
    const eviction = evictionOf(pod)
    return eviction?.state === 'blocked' ? eviction.retryAtMs : world.nowMs
  }
  const due = staying.filter((pod) => retryAtMs(pod) <= world.nowMs)
  const evict = due.slice(0, Math.max(0, mostEvictions - (toDrain.length - staying.length)))
  const againAtMs = Math.min(...staying.map(retryAtMs).filter((atMs) => atMs > world.nowMs), Number.POSITIVE_INFINITY)
  return { evict, reason: { reason: 'DrainBlocked', message: whyNotEmpty(staying, toDrain, evictionOf) }, againAtMs }
}

/** The first refused eviction with the server's reason, else the pods that are still ending. */
function whyNotEmpty(staying: readonly Pod[], toDrain: readonly Pod[], evictionOf: (pod: Pod) => Eviction | undefined): string {
  for (const pod of staying) {
    const eviction = evictionOf(pod)
    if (eviction?.state === 'blocked') return `pod ${nameOf(pod)} (${eviction.message})`
  }
  return `waiting for ${namesOf(toDrain)} to end`
}

const nameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const byName = (a: Pod, b: Pod): number => (nameOf(a) < nameOf(b) ? -1 : 1)

function namesOf(pods: readonly Pod[]): string {
  const names = pods.map(nameOf).sort()
  return names.length > mostNames ? `${names.slice(0, mostNames).join(', ')}, …` : names.join(', ')
}
