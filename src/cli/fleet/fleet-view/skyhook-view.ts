/** A Skyhook as an agent knows it while it asks for a slot, to compute the answer to the agent. */
import type { Skyhook } from '../../../schemas/skyhook.ts'
import type { SkyhookView } from '../../../stages/model/snapshot.ts'
import type { FleetView } from './fleet-view.ts'
import { valueOr } from './readable.ts'
import { knownBudget } from './settings.ts'
import { readLedger } from '../../../lease/ledger.ts'
import { labelKeys } from '../../../lease/names.ts'
import { readSlotTimes, slowestOf } from '../../../lease/slot-times.ts'
import { appliedHash } from '../../../stages/model/package-inputs.ts'

/**
 * Without its policy. An agent reads the number of Nodes right before: a count may be of a larger cluster. If the
 * caller may not read Nodes, percentages are of the last count.
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

/** Undefined if no node has finished, or if Leases may not be read. */
export function finishedWork(
  { ledgers }: Pick<FleetView<unknown>, 'ledgers'>,
  { metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>,
): ReturnType<typeof slowestOf> {
  const lease = ledgers.known
    ? ledgers.value.find((one) => one.metadata.labels?.[labelKeys.name] === metadata.name)
    : undefined
  const read = lease && readLedger(lease)
  return read?.outcome === 'read' ? slowestOf(readSlotTimes(read.ledger.slotTimes), appliedHash(spec)) : undefined
}
