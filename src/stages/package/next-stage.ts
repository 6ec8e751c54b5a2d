import type { PackageProgress, PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { isConfigDue } from '../model/package-inputs.ts'
import { publishedState } from '../model/package-state.ts'
import { newPackage } from '../model/transitions.ts'
import { compareVersions } from './versions.ts'

/** What one package of a Skyhook has to do next on this node. */
export type Due =
  /** Complete for this spec, or staying as it is on purpose. */
  | { readonly due: 'nothing' }
  /** The entry's stage is due, under way or failed: carry on with it. */
  | { readonly due: 'continue'; readonly entry: PackageRecord }
  | { readonly due: 'begin'; readonly entry: PackageRecord; readonly stage: StageName }
  /** Nothing of this entry ever reached the host: it is simply dropped. */
  | { readonly due: 'forget'; readonly entry: PackageRecord }

const nothingDue: Due = { due: 'nothing' }
const begin = (entry: PackageRecord, stage: StageName): Due => ({ due: 'begin', entry, stage })

/**
 * The stage machine of one package name: entries of the journal against the spec (undefined = removed from the
 * Skyhook; `isDeleted`: with the whole of it). The first line that applies:
 *
 * | the host has                        | the spec says               | due                                      |
 * |-------------------------------------|-----------------------------|------------------------------------------|
 * | an unfinished uninstall             |                             | continue with it                         |
 * | versions                            | nothing                     | uninstall or keep each, by its policy    |
 * | a started version                   | uninstall                   | uninstall of the newest                  |
 * | a started version above the spec's  | a lower version             | uninstall of it, or apply over it        |
 * | the spec's version                  |                             | what follows in its stages               |
 * | only versions that never started    | another version             | forget them                              |
 * | an older version, or nothing        | a version                   | upgrade, or apply                        |
 */
export function dueOf(
  name: string,
  spec: PackageSpec | undefined,
  entries: readonly PackageRecord[],
  isDeleted = false,
): Due {
  const uninstalling = entries.find(({ progress }) => progress.stage === 'uninstall' && !isPassed(progress))
  if (uninstalling) return { due: 'continue', entry: uninstalling }
  const active = entries
    .filter(({ progress }) => progress.state !== 'retained')
    .toSorted((a, b) => compareVersions(b.version, a.version))
  if (spec === undefined) return dueOfRemoved(active, isDeleted)

  const started = active.filter(isOnHost)
  const newest = started[0]
  const entry = active.find(({ version }) => version === spec.version)
  if (spec.uninstall?.enabled === true && spec.uninstall.apply === true) {
    if (newest) return begin(newest, 'uninstall')
    const unstarted = active.find((other) => other !== entry || other.progress.stage !== 'uninstall')
    return unstarted ? { due: 'forget', entry: unstarted } : nothingDue
  }
  const higher = started.find(({ version }) => compareVersions(version, spec.version) > 0) // also one that only began
  if (higher && spec.uninstall?.enabled !== false) return begin(higher, 'uninstall')
  const stored = entries.find(({ version }) => version === spec.version)
  if (higher) return begin(stored ?? newPackage(name, spec, 'apply'), 'apply')
  const hasOlder = started.some((other) => other !== entry)
  if (entry) return dueOfEntry(entry, spec, hasOlder)
  const unstarted = active.find((other) => !started.includes(other))
  if (unstarted) return { due: 'forget', entry: unstarted }
  const stage = newest === undefined ? 'apply' : 'upgrade'
  return begin(stored ?? newPackage(name, spec, stage), stage)
}

/** Some of it is on the host, by this agent or by the operator. */
const isOnHost = ({ work, config }: PackageRecord): boolean => work !== undefined || config?.finished !== undefined

/**
 * Taken out of the Skyhook, a package is uninstalled unless its policy keeps it; deleted with it, only if its policy
 * says so.
 */
function dueOfRemoved(active: readonly PackageRecord[], isDeleted: boolean): Due {
  for (const entry of active) {
    if (!isOnHost(entry)) return { due: 'forget', entry }
    const isKept = isDeleted ? entry.uninstall?.enabled !== true : entry.uninstall?.enabled === false
    if (!isKept) return begin(entry, 'uninstall')
  }
  return nothingDue
}

/** The stage that follows the one that passed. */
function dueOfEntry(entry: PackageRecord, spec: PackageSpec, hasOlderVersion: boolean): Due {
  const { progress, pendingInterrupt } = entry
  if (!isPassed(progress)) return { due: 'continue', entry }
  switch (progress.stage) {
    case 'uninstall':
      return begin(entry, hasOlderVersion ? 'upgrade' : 'apply')
    case 'apply':
    case 'upgrade':
      return begin(entry, 'config')
    case 'config':
      if (isConfigDue(entry, spec)) return begin(entry, 'config')
      return pendingInterrupt ? begin(entry, 'interrupt') : nothingDue
    case 'interrupt':
      return begin(entry, 'post-interrupt')
    case 'post-interrupt':
      return isConfigDue(entry, spec) ? begin(entry, 'config') : nothingDue
  }
}

/** Nothing is left to do in the stage. */
const isPassed = (progress: PackageProgress): boolean => ['complete', 'skipped'].includes(publishedState(progress))

/** True when a package is what the spec asks for and nothing is due; dependents may start. */
export const isComplete = (name: string, spec: PackageSpec, entries: readonly PackageRecord[]): boolean =>
  dueOf(name, spec, entries).due === 'nothing'

/** True when the package is between its first step and its completion: the host is half changed. */
export function isMidChange({ work, progress, pendingInterrupt }: PackageRecord): boolean {
  if (work === undefined || progress.state === 'retained' || progress.state === 'skipped') return false
  const { state, stage } = progress
  const isFinal = stage === 'post-interrupt' || (stage === 'config' && !pendingInterrupt)
  return !(state === 'complete' && isFinal)
}
