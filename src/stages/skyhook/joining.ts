/**
 * Nodes that join the cluster: they carry the runtime-required taint and have no pods that must leave. Their capacity
 * is not in use yet, so they have a budget of their own (bootstrap).
 */
import { hasRequiredTaint } from '../drain/node-spec.ts'
import { groupPods, podsInTheWay } from '../drain/pods.ts'
import type { OwnSlot, SkyhookView, Snapshot } from '../model/snapshot.ts'

export type Membership =
  | 'joining'
  | 'in-service'
  /** It has the taint, and its pods are not known yet. */
  | 'unknown'

export function membershipOf({ node, pods, settings, hasJoined }: Snapshot, { spec }: SkyhookView): Membership {
  if (hasJoined === true || !hasRequiredTaint(node, settings.runtimeRequiredTaint)) return 'in-service'
  if (!pods.known) return 'unknown'
  const inTheWay = podsInTheWay(groupPods(pods.value.pods, spec, settings))
  return inTheWay.length === 0 ? 'joining' : 'in-service'
}

/** Nothing starts under a slot of the budget for joining nodes on a node that is in service, or is about to be. */
export const isOfNoUse = (snapshot: Snapshot, view: SkyhookView, slot: OwnSlot | undefined): boolean =>
  slot?.isBootstrap === true && membershipOf(snapshot, view) === 'in-service'

/**
 * Running work on a node that was joining when it started, and is in service now: someone removed the taint. The slot
 * counts no capacity, but the node takes some.
 */
export const isInServiceUnder = ({ node, settings }: Snapshot, slot: OwnSlot): boolean =>
  slot.isBootstrap === true && !hasRequiredTaint(node, settings.runtimeRequiredTaint)
