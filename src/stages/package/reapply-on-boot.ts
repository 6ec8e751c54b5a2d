import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { reapply } from '../model/transitions.ts'

/**
 * A boot that no agent requested: with reapplyOnReboot of the chart, hosts that lose their changes get every package
 * applied again. Our own reboots are part of a package's work and never cause it.
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

/** Every package at the start of apply; versions, publications and counts stay. */
function resetForReapply(record: SkyhookRecord): SkyhookRecord {
  const packages = Object.fromEntries(
    Object.entries(record.packages).map(([key, entry]) => [
      key,
      entry.progress.stage === 'uninstall' ? entry : reapply(entry),
    ]),
  )
  return { ...record, lifecycle: undefined, interrupt: undefined, packages, flags: {} }
}
