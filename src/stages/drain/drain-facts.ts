/** What the agent knows in addition to the pods: what it evicted, and how many nodes there are. */
import type { Journal, Lifecycle } from '../../schemas/journal.ts'
import { ownValue } from '../../schemas/own-value.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import type { Pod } from '../model/pods.ts'
import type { EvictedOwner, NodeCount, Snapshot } from '../model/snapshot.ts'
import { type DrainFacts, ownerKeyOf } from './pods.ts'

/** A node that waits for pods counts the nodes again: the cluster may have shrunk to this one. */
const countLastsMs = 60_000

/** Of the current work of the Skyhook on this node: pods evicted for earlier work may be evicted again. */
export function drainFacts(
  {
    settings,
    journal,
    evictedOwners,
  }: Pick<Snapshot, 'journal' | 'evictedOwners'> & {
    readonly settings: { readonly skipNamespaces: readonly string[] }
  },
  skyhook: string,
): DrainFacts {
  const lifecycle = lifecycleOf(journal, skyhook)
  const { skipNamespaces } = settings
  return { skipNamespaces, cameBack: (pod) => hasComeBack(pod, evictedOwners, lifecycle) }
}

function hasComeBack(
  pod: Pod,
  evictedOwners: ReadonlyMap<string, EvictedOwner>,
  lifecycle: Lifecycle | undefined,
): boolean {
  const owner = evictedOwners.get(ownerKeyOf(pod))
  if (owner === undefined || lifecycle === undefined || owner.atMs < lifecycle.startedAtMs) return false
  return !owner.uids.has(pod.metadata.uid)
}

const lifecycleOf = ({ skyhooks }: Journal, skyhook: string): Lifecycle | undefined =>
  ownValue(skyhooks, skyhook)?.lifecycle

/**
 * Evicted pods could not be scheduled elsewhere: counted since this work started, at the latest right before the
 * interrupt.
 */
export const isAlone = (
  { drain }: Pick<SkyhookSpec, 'drain'>,
  count: NodeCount | undefined,
  sinceMs: number,
): boolean => drain?.singleNode === 'skip' && count?.isSingle === true && count.atMs >= sinceMs

/** Since when a count belongs to this drain. */
export const countsSinceMs = (journal: Journal, skyhook: string): number =>
  lifecycleOf(journal, skyhook)?.startedAtMs ?? Infinity

/** When the nodes must be counted before pods are evicted; undefined where the spec does not require it. */
export function countDueAtMs(
  { drain }: Pick<SkyhookSpec, 'drain'>,
  { nodeCount, journal, nowMs }: Pick<Snapshot, 'nodeCount' | 'journal' | 'nowMs'>,
  skyhook: string,
): number | undefined {
  if (drain?.singleNode !== 'skip') return undefined
  if (nodeCount === undefined || nodeCount.atMs < countsSinceMs(journal, skyhook)) return nowMs
  return nodeCount.atMs + countLastsMs
}
