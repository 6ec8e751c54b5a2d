import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { isConfigDue } from '../model/package-inputs.ts'
import { packageKey } from '../model/package-key.ts'
import { compareVersions } from './versions.ts'

/** What one package of a Skyhook has to do next on this node. */
export type Due =
  /** Complete for this spec, or staying as it is on purpose. */
  | { readonly due: 'nothing' }
  /** The entry's stage is under way or failed: carry on with it. */
  | { readonly due: 'continue'; readonly key: string }
  | { readonly due: 'begin'; readonly key: string; readonly version: string; readonly stage: StageName }
  /** Nothing of this entry ever reached the host: it is simply dropped. */
  | { readonly due: 'forget'; readonly key: string }

const nothingDue: Due = { due: 'nothing' }

/**
 * The stage machine of one package name: entries of the journal against the spec (absent = removed from the Skyhook).
 * First install and upgrade run apply or upgrade, then config; a lower version runs uninstall of the old one first; a
 * removed package runs uninstall unless its policy keeps it; `isDeleted`: the whole Skyhook goes (reference: operator
 * §3, with the decisions of the design).
 * /
 */
export function dueOf(
  name: string,
  spec: PackageSpec | undefined,
  entries: readonly PackageRecord[],
  isDeleted = false,
): Due {
  const uninstalling = entries.find(
    ({ stage, state }) => stage === 'uninstall' && state !== 'complete' && state !== 'skipped',
  )
  if (uninstalling) return continueEntry(uninstalling)
  const activeEntries = entries
    .filter(({ retained }) => retained !== true)
    .toSorted((a, b) => compareVersions(b.version, a.version))
  if (spec === undefined) return dueOfRemoved(activeEntries, isDeleted)

  const startedEntries = activeEntries.filter(
    ({ work, finishedInputs }) => work !== undefined || finishedInputs !== undefined,
  )
  const newest = startedEntries[0]
  const entry = activeEntries.find(({ version }) => version === spec.version)
  const key = packageKey(name, spec.version)
  if (spec.uninstall?.enabled === true && spec.uninstall.apply === true) {
    if (newest) return beginStageOf(newest, 'uninstall')
    const unstartedVersion = activeEntries.find((other) => other !== entry || other.stage !== 'uninstall')
    return unstartedVersion ? { due: 'forget', key: packageKey(name, unstartedVersion.version) } : nothingDue
  }
  const higher = startedEntries.find(({ version }) => compareVersions(version, spec.version) > 0) // also one that only began
  if (higher && spec.uninstall?.enabled !== false) return beginStageOf(higher, 'uninstall')
  if (higher) return { due: 'begin', key, version: spec.version, stage: 'apply' }
  if (entry)
    return dueOfEntry(
      entry,
      spec,
      startedEntries.some((other) => other !== entry),
    )
  const unstartedEntry = activeEntries.find((other) => !startedEntries.includes(other))
  if (unstartedEntry) return { due: 'forget', key: packageKey(name, unstartedEntry.version) }
  return { due: 'begin', key, version: spec.version, stage: newest === undefined ? 'apply' : 'upgrade' }
}

const beginStageOf = ({ name, version }: PackageRecord, stage: StageName): Due => ({
  due: 'begin',
  key: packageKey(name, version),
  version,
  stage,
})

/**
 * Taken out of the Skyhook, a package is uninstalled unless its policy keeps it; deleted with it, only if its policy
 * says so.
 */
function dueOfRemoved(activeEntries: readonly PackageRecord[], isDeleted: boolean): Due {
  for (const entry of activeEntries) {
    const key = packageKey(entry.name, entry.version)
    if (entry.work === undefined && entry.finishedInputs === undefined) return { due: 'forget', key }
    if (isDeleted ? entry.uninstall?.enabled !== true : entry.uninstall?.enabled === false) continue
    return beginStageOf(entry, 'uninstall')
  }
  return nothingDue
}

function dueOfEntry(entry: PackageRecord, spec: PackageSpec, hasOlderVersion: boolean): Due {
  if (entry.state !== 'complete' && entry.state !== 'skipped') return continueEntry(entry)
  switch (entry.stage) {
    case 'uninstall':
      return beginStageOf(entry, hasOlderVersion ? 'upgrade' : 'apply')
    case 'apply':
    case 'upgrade':
      return beginStageOf(entry, 'config')
    case 'config':
      if (isConfigDue(entry, spec)) return beginStageOf(entry, 'config')
      return entry.pendingInterrupt ? beginStageOf(entry, 'interrupt') : nothingDue
    case 'interrupt':
      return beginStageOf(entry, 'post-interrupt')
    case 'post-interrupt':
      return isConfigDue(entry, spec) ? beginStageOf(entry, 'config') : nothingDue
  }
}

const continueEntry = (entry: PackageRecord): Due => ({ due: 'continue', key: packageKey(entry.name, entry.version) })

/** True when a package is what the spec asks for and nothing is due; dependents may start. */
export const isComplete = (name: string, spec: PackageSpec, entries: readonly PackageRecord[]): boolean =>
  dueOf(name, spec, entries).due === 'nothing'

/** True when the package stands between its first step and its completion: the host is half changed. */
export function isMidChange(entry: PackageRecord): boolean {
  return (
    entry.work !== undefined &&
    entry.retained !== true &&
    entry.state !== 'skipped' &&
    !(
      entry.state === 'complete' &&
      (entry.stage === 'post-interrupt' || (entry.stage === 'config' && !entry.pendingInterrupt))
    )
  )
}
