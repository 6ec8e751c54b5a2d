import type { SkyhookRecord } from '../../schemas/journal.ts'
import { newPlanBuilder } from '../model/plan-builder.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { recordOfSkyhook } from './bootstrap.ts'
import { isSelected } from './gates.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'

/**
 * The available spec is known to be outdated. It cannot prove that a node has left either: the spec that is being read
 * may select it.
 */
export const isOutdated = (snapshot: Snapshot, view: SkyhookView): boolean =>
  view.stale || (snapshot.areSkyhooksInDoubt === true && !isSelected(view, snapshot))

/**
 * Nothing new is decided until the new spec is read: record, slot, cordon, the watch of pods and the published state
 * stay. Undefined for a Skyhook that does not select the node and never did anything here.
 */
export function planOutdated(
  snapshot: Snapshot,
  view: SkyhookView,
  before: SkyhookRecord | undefined,
): SkyhookPlan | undefined {
  const selected = isSelected(view, snapshot)
  if (!before && !selected) return undefined
  const builder = newPlanBuilder(snapshot, view, recordOfSkyhook(before, view))
  const { lifecycle, published } = builder.record
  builder.asksForSlot = snapshot.slotDenials.has(view.metadata.name) // keeps its place in the line
  return {
    builder,
    status: published?.status ?? (selected ? 'waiting' : 'unknown'),
    complete: !selected && lifecycle === undefined,
    cordon: 'as-is',
    watchPods: snapshot.pods.known ? snapshot.pods.value.since : 'no', // not opened for it, and not closed
  }
}
