import type { PlanBuilder } from '../model/plan-builder.ts'
import type { OwnSlot, PreparationDepth } from '../model/snapshot.ts'
import { membershipOf } from './joining.ts'
import { isSpent } from './soak.ts'

/**
 * How far the images of a Skyhook are prepared on this node. Layers cost the registry and the disk, and a rollout may
 * last for days: a node that is far from its turn only checks whether its images exist.
 *
 * | the node                                         | prepares |
 * |--------------------------------------------------|----------|
 * | has started to work                              | layers   |
 * | holds a slot under which work may start          | layers   |
 * | joins the cluster: it asks without a line        | layers   |
 * | is next in line, or needs no line                | layers   |
 * | is far from its turn, or may be                  | manifest |
 */
export function preparationDepth(builder: PlanBuilder, slot: OwnSlot | undefined): PreparationDepth {
  const { snapshot, view, record } = builder
  const mayStart = record.lifecycle !== undefined || (slot !== undefined && !isSpent(builder, slot))
  const isDistant = snapshot.distantSkyhooks.has(view.metadata.name)
  return !mayStart && isDistant && membershipOf(snapshot, view) !== 'joining' ? 'manifest' : 'layers'
}
