/** How long nodes were at work that have finished the current spec, from the ledger of the Skyhook. Pure. */
import { readLedger } from '../../lease/ledger.ts'
import { labelKeys } from '../../lease/names.ts'
import { readSlotTimes, slowestOf } from '../../lease/slot-times.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { appliedHash } from '../../stages/model/package-inputs.ts'
import type { FleetView } from './fleet-view.ts'

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
