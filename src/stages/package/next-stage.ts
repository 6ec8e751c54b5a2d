import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { configIsDue } from '../model/package-inputs.ts'
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

export const packageKey = (name: string, version: string): string => `${name}|${version}`

const nothing: Due = { due: 'nothing' }

/**
 * The stage machine of one package name: entries of the journal against the spec (absent = removed from the Skyhook).
 * First install and upgrade run apply or upgrade, then config; a lower version runs uninstall of the old one first; a
 * removed package runs uninstall unless its policy keeps it; `isDeleted`: the whole Skyhook goes (reference: operator §3,
 * with the decisions of the design).
 */
export function dueOf(name: string, spec: PackageSpec | undefined, entries: readonly PackageRecord[], isDeleted = false): Due {
  const uninstalling = entries.find(({ stage, state }) => stage === 'uninstall' && state !== 'complete' && state !== 'skipped')
  if (uninstalling) return onward(uninstalling)
  const live = entries.filter(({ kept }) => kept !== true).toSorted((a, b) => compareVersions(b.version, a.version))
  if (spec === undefined) return dueOfRemoved(live, isDeleted)

  const begun = live.filter(({ work, finished }) => work !== undefined || finished !== undefined)
  const newest = begun[0]
  const entry = live.find(({ version }) => version === spec.version)
  const key = packageKey(name, spec.version)
  if (spec.uninstall?.enabled === true && spec.uninstall.apply === true) {
    if (newest) return beginAt(newest, 'uninstall')
    const idle = live.find((other) => other !== entry || other.stage !== 'uninstall')
    return idle ? { due: 'forget', key: packageKey(name, idle.version) } : nothing
  }
  const higher = begun.find(({ version }) => compareVersions(version, spec.version) > 0) // also one that only began
  if (higher && spec.uninstall?.enabled !== false) return beginAt(higher, 'uninstall')
  if (higher) return { due: 'begin', key, version: spec.version, stage: 'apply' }
  if (entry)
    return dueOfEntry(
      entry,
      spec,
      begun.some((other) => other !== entry),
    )
  const unbegun = live.find((other) => !begun.includes(other))
  if (unbegun) return { due: 'forget', key: packageKey(name, unbegun.version) }
  return { due: 'begin', key, version: spec.version, stage: newest === undefined ? 'apply' : 'upgrade' }
}

const beginAt = ({ name, version }: PackageRecord, stage: StageName): Due => ({
  due: 'begin',
  key: packageKey(name, version),
  version,
  stage,
})

/** Taken out of the Skyhook, a package is uninstalled unless its policy keeps it; deleted with it, only if its policy says so. */
function dueOfRemoved(live: readonly PackageRecord[], isDeleted: boolean): Due {
  for (const entry of live) {
    const key = packageKey(entry.name, entry.version)
    if (entry.work === undefined && entry.finished === undefined) return { due: 'forget', key }
    if (isDeleted ? entry.uninstall?.enabled !== true : entry.uninstall?.enabled === false) continue
    return beginAt(entry, 'uninstall')
  }
  return nothing
}

function dueOfEntry(entry: PackageRecord, spec: PackageSpec, isOverOlder: boolean): Due {
  if (entry.state !== 'complete' && entry.state !== 'skipped') return onward(entry)
  switch (entry.stage) {
    case 'uninstall':
      return beginAt(entry, isOverOlder ? 'upgrade' : 'apply')
    case 'apply':
    case 'upgrade':
      return beginAt(entry, 'config')
    case 'config':
      if (configIsDue(entry, spec)) return beginAt(entry, 'config')
      return entry.owes ? beginAt(entry, 'interrupt') : nothing
    case 'interrupt':
      return beginAt(entry, 'post-interrupt')
    case 'post-interrupt':
      return configIsDue(entry, spec) ? beginAt(entry, 'config') : nothing
  }
}

const onward = (entry: PackageRecord): Due => ({ due: 'continue', key: packageKey(entry.name, entry.version) })

/** True when a package is what the spec asks for and nothing is due; dependents may start. */
export const isComplete = (name: string, spec: PackageSpec, entries: readonly PackageRecord[]): boolean =>
  dueOf(name, spec, entries).due === 'nothing'

/** True when the package stands between its first step and its completion: the host is half changed. */
export function isMidChange(entry: PackageRecord): boolean {
  return (
    entry.work !== undefined &&
    entry.kept !== true &&
    entry.state !== 'skipped' &&
    !(entry.state === 'complete' && (entry.stage === 'post-interrupt' || (entry.stage === 'config' && !entry.owes)))
  )
}
