/** Pauses after failures, in a rehearsal whose steps take no time. Pure. */
import type { Journal, PackageRecord } from '../../schemas/journal.ts'

/** When packages that failed are tried again, the first one first. */
export const pauseEnds = ({ skyhooks }: Journal): readonly number[] =>
  [...new Set(Object.values(skyhooks).flatMap(({ packages }) => Object.values(packages).flatMap(endOf)))].toSorted(
    (a, b) => a - b,
  )

const endOf = ({ progress }: PackageRecord): number | readonly [] =>
  progress.state === 'retrying' ? progress.retryAtMs : []

/**
 * Those that have not passed last next to nothing, and end in their order: a package that is tried again later than
 * another one owes its interrupt later. Their length would end other waits, which have nothing to do with the edit.
 */
export function withShortPauses(journal: Journal, nowMs: number): Journal {
  const late = pauseEnds(journal).filter((endMs) => endMs > nowMs)
  const shortened = (entry: PackageRecord): PackageRecord => {
    const { progress } = entry
    if (progress.state !== 'retrying') return entry
    return {
      ...entry,
      progress: { ...progress, retryAtMs: nowMs + late.indexOf(progress.retryAtMs) + 1 },
    } as PackageRecord
  }
  return {
    ...journal,
    skyhooks: changed(journal.skyhooks, (record) => ({ ...record, packages: changed(record.packages, shortened) })),
  }
}

const changed = <T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
