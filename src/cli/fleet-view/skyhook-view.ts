/** A Skyhook as an agent knows it while it asks for a slot, for whoever computes what the agent is answered. */
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { FleetView } from './fleet-view.ts'
import { valueOr } from './readable.ts'
import { knownBudget } from './settings.ts'

/**
 * Without its policy. An agent asks how many Nodes there are right before: a count may be of a larger cluster. Where
 * the caller may not read Nodes, percentages are of the last count.
 */
export const skyhookViewOf = (
  { nodes, settings }: Pick<FleetView<unknown>, 'nodes' | 'settings'>,
  { metadata, spec }: Skyhook,
): SkyhookView => ({
  metadata,
  spec,
  budget: valueOr(knownBudget(spec, settings), {}),
  stale: false,
  ...(nodes.known && { nodes: nodes.value.length }),
})
