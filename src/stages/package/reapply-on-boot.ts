import type { Journal, PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import type { World } from '../model/snapshot.ts'

/**
 * A boot that no agent asked for: where the chart says so (reapplyOnReboot), hosts that forget their changes get every
 * package applied again. A reboot of our own is part of a package's work and never causes it.
 */
export function noteBoot(journal: Journal, { bootId, settings }: World): Journal {
  const isNew = journal.bootId !== undefined && journal.bootId !== bootId
  const isOurs = Object.values(journal.skyhooks).some(
    ({ interrupt }) => interrupt?.interrupt.type === 'reboot' && interrupt.bootId === journal.bootId,
  )
  if (!isNew || isOurs || !settings.reapplyOnReboot) return journal.bootId === bootId ? journal : { ...journal, bootId }
  const skyhooks = Object.fromEntries(
    Object.entries(journal.skyhooks).map(([name, record]) => [name, record.orphaned ? record : startedOver(record)]),
  )
  return { ...journal, bootId, skyhooks }
}

/** Every package at the beginning of apply; versions, publications and counts stay. */
function startedOver(record: SkyhookRecord): SkyhookRecord {
  const { lifecycle: _, interrupt: __, ...kept } = record
  const packages = Object.fromEntries(
    Object.entries(record.packages).map(([key, entry]) => [key, entry.stage === 'uninstall' ? entry : atApply(entry)]),
  )
  return { ...kept, packages, flags: {} }
}

const atApply = ({ name, version, image, containerSHA, uninstall }: PackageRecord): PackageRecord => ({
  name,
  version,
  image,
  ...(containerSHA && { containerSHA }),
  ...(uninstall && { uninstall }),
  stage: 'apply',
  state: 'in_progress',
  restarts: 0,
})
