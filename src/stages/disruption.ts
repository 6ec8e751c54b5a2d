import { cordonKey, cordonedBeforeKey, keepCordonedKey } from '../schemas/annotations.ts'
import type { KubernetesNode } from '../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../schemas/skyhook.ts'
import type { CordonState } from './cordon-ownership.ts'
import { groupPods } from './pods.ts'
import type { Pod } from './pods.ts'
import type { Reason } from './reasons.ts'
import type { SlotPhase, World } from './world.ts'

/** How far the node is out of service for one Skyhook. */
export type Disruption = {
  /** The cordon is ours and visible, and nothing is left that would have to go. */
  readonly drained: boolean
  /** Our mark is on the Node. */
  readonly marked: boolean
  readonly phase?: SlotPhase
  readonly reason?: Reason
  /** Pods to ask the Eviction API for now. */
  readonly evict: readonly Pod[]
  /** The pods of this node have to be followed. */
  readonly watchPods: boolean
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
  const none: Disruption = { drained: false, marked, evict: [], watchPods: false, againAtMs: Number.POSITIVE_INFINITY }
  if (!marked || !cordon.unschedulable) return { ...none, phase: 'cordoning' }
  if (!world.pods.known) return { ...none, watchPods: true, phase: 'draining' }

  const groups = groupPods(world.pods.value, spec.podNonInterruptLabels, world.settings.skipNamespaces)
  if (groups.protected.length > 0) {
    const reason: Reason = {
      reason: 'ProtectedPods',
      message: `waiting for ${namesOf(groups.protected)} to end: never interrupted by podNonInterruptLabels`,
    }
    return { ...none, watchPods: true, phase: 'protected-pods', reason }
  }
  if (groups.toDrain.length === 0) return { ...none, drained: true, watchPods: true }
  return { ...none, watchPods: true, phase: 'draining', ...draining(world, groups.toDrain) }
}

function draining(
  world: World,
  toDrain: readonly Pod[],
): { readonly evict: readonly Pod[]; readonly reason: Reason; readonly againAtMs: number } {
  const evictionOf = (pod: Pod) => world.evictions.get(pod.metadata.uid)
  const going = toDrain.filter((pod) => pod.metadata.deletionTimestamp !== undefined || evictionOf(pod)?.state === 'asked')
  const blocked = toDrain.filter((pod) => pod.metadata.deletionTimestamp === undefined && evictionOf(pod)?.state === 'blocked')
  const againAtMs = Math.min(...blocked.map((pod) => retryAt(evictionOf(pod), world.nowMs)), Number.POSITIVE_INFINITY)
  const due = toDrain.filter((pod) => pod.metadata.deletionTimestamp === undefined && retryAt(evictionOf(pod), world.nowMs) <= world.nowMs)
  const evict = due.toSorted(byName).slice(0, Math.max(0, mostEvictions - going.length))

  const first = blocked.toSorted(byName)[0]
  const why = first && evictionOf(first)
  const message = first && why?.state === 'blocked' ? `pod ${nameOf(first)} (${why.message})` : `waiting for ${namesOf(toDrain)} to end`
  return { evict, reason: { reason: 'DrainBlocked', message }, againAtMs }
}

function retryAt(eviction: World['evictions'] extends ReadonlyMap<string, infer T> ? T | undefined : never, nowMs: number): number {
  if (eviction === undefined) return nowMs
  return eviction.state === 'blocked' ? eviction.retryAtMs : Number.POSITIVE_INFINITY
}

const nameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const byName = (a: Pod, b: Pod): number => (nameOf(a) < nameOf(b) ? -1 : 1)

function namesOf(pods: readonly Pod[]): string {
  const names = pods.map(nameOf).sort()
  return names.length > mostNames ? `${names.slice(0, mostNames).join(', ')}, …` : names.join(', ')
}

/** The node reports Ready from the present boot: only then may it go back to service after an interrupt. */
export function isReadyFromThisBoot(world: World): boolean {
  const ready = world.node.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && world.node.status?.nodeInfo?.bootID === world.bootId
}
