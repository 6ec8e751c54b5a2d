import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { reapply } from '../model/transitions.ts'

/**
 * A boot that no agent asked for: where the chart says so (reapplyOnReboot), hosts that forget their changes get every
 * package applied again. A reboot of our own is part of a package's work and never causes it.
 */
export function recordBoot(journal: Journal, { bootId, settings }: Snapshot): Journal {
  const isNewBoot = journal.bootId !== undefined && journal.bootId !== bootId
  const isOwnReboot = Object.values(journal.skyhooks).some(
    ({ interrupt }) => interrupt?.interrupt.type === 'reboot' && interrupt.bootId === journal.bootId,
  )
  if (!isNewBoot || isOwnReboot || !settings.reapplyOnReboot)
    return journal.bootId === bootId ? journal : { ...journal, bootId }
  const skyhooks = Object.fromEntries(
    Object.entries(journal.skyhooks).map(([name, record]) => [
      name,
      record.orphaned ? record : resetForReapply(record),
    ]),
  )
  return { ...journal, bootId, skyhooks }
}

/** Every package at the beginning of apply; versions, publications and counts stay. */
function resetForReapply(record: SkyhookRecord): SkyhookRecord {
  const packages = Object.fromEntries(
    Object.entries(record.packages).map(([key, entry]) => [
      key,
      entry.progress.stage === 'uninstall' ? entry : reapply(entry),
    ]),
  )
  return { ...record, lifecycle: undefined, interrupt: undefined, packages, flags: {} }
}
