/** The companion's data of each package's work: enough to predict the effect of an edit. */
import type { PublishedWork } from '../../schemas/annotations.ts'
import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import { perObject } from '../../schemas/per-object.ts'
import { inputsHash } from '../model/package-inputs.ts'
import { isUnfinished } from '../package/next-stage.ts'

/** By the keys of nodeState; without packages that have none of these data. */
export const publishedWork = ({ packages }: SkyhookRecord): Readonly<Record<string, PublishedWork>> => workOf(packages)

const workOf = perObject(
  (packages: SkyhookRecord['packages']): Readonly<Record<string, PublishedWork>> =>
    Object.fromEntries(
      Object.entries(packages)
        .map(([key, entry]) => [key, workOfPackage(entry)] as const)
        .filter(([, work]) => Object.keys(work).length > 0)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ),
)

const workOfPackage = (entry: PackageRecord): PublishedWork => {
  const { config, pendingInterrupt, uninstall, progress, adopted } = entry
  return {
    ...(config && { inputs: inputsHash(config.started) }),
    ...(config?.finished && { wasComplete: true }),
    ...(config && config.changedKeys.length > 0 && { changed: config.changedKeys }),
    ...(config?.interrupts && { configInterrupts: config.interrupts }),
    ...(pendingInterrupt && { interrupt: pendingInterrupt.interrupt }),
    ...(uninstall && { uninstall }),
    ...(progress.state === 'retained' && { isRetained: true }),
    ...(adopted && isUnfinished(entry) && { isAdopted: true }),
  }
}

const workField = /,"work":\{.*\}\}$/

/** Whether two texts of a companion differ only in the work, which alone does not justify a write. */
export const isSameCompanion = (current: string | undefined, next: string | null | undefined): boolean =>
  current === next || (current !== undefined && typeof next === 'string' && bare(current) === bare(next))

const bare = (companion: string): string => companion.replace(workField, '}')
