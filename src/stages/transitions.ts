import type { PackageRecord } from '../schemas/journal.ts'
import type { PackageSpec, StageName } from '../schemas/skyhook.ts'
import { configIsDue } from './config-changes.ts'
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
  const uninstalling = entries.find((entry) => entry.stage === 'uninstall' && entry.state !== 'complete')
  if (uninstalling && (uninstalling.state !== 'skipped' || spec?.version !== uninstalling.version)) return onward(uninstalling)
  if (spec === undefined) return dueOfRemoved(entries, isDeleted)

  const entry = entries.find(({ version }) => version === spec.version)
  if (entry) return dueOfEntry(entry, spec)

  const others = entries.filter(({ work, finished }) => work !== undefined || finished !== undefined)
  const unbegun = entries.find((other) => !others.includes(other))
  if (unbegun) return { due: 'forget', key: packageKey(name, unbegun.version) }
  const newest = others.toSorted((a, b) => compareVersions(b.version, a.version))[0]
  if (spec.uninstall?.enabled === true && spec.uninstall.apply === true && newest === undefined) return nothing // never installed: nothing to uninstall
  const key = packageKey(name, spec.version)
  if (newest === undefined) return { due: 'begin', key, version: spec.version, stage: 'apply' }
  if (compareVersions(newest.version, spec.version) <= 0) return { due: 'begin', key, version: spec.version, stage: 'upgrade' }
  if ((spec.uninstall ?? newest.uninstall)?.enabled === false) return { due: 'begin', key, version: spec.version, stage: 'apply' }
  return { due: 'begin', key: packageKey(name, newest.version), version: newest.version, stage: 'uninstall' }
}

function dueOfRemoved(entries: readonly PackageRecord[], isDeleted: boolean): Due {
  for (const entry of entries) {
    const key = packageKey(entry.name, entry.version)
    if (entry.work === undefined && entry.finished === undefined) return { due: 'forget', key }
    if (entry.stage === 'uninstall' && entry.state === 'complete') return { due: 'forget', key }
    if (isDeleted ? entry.uninstall?.enabled !== true : entry.uninstall?.enabled === false) continue
    return { due: 'begin', key, version: entry.version, stage: 'uninstall' }
  }
  return nothing
}

function dueOfEntry(entry: PackageRecord, spec: PackageSpec): Due {
  const begin = (stage: StageName): Due => ({ due: 'begin', key: packageKey(entry.name, entry.version), version: entry.version, stage })
  const wantsUninstalled = spec.uninstall?.enabled === true && spec.uninstall.apply === true
  if (wantsUninstalled) {
    if (entry.stage === 'uninstall') return entry.state === 'complete' ? nothing : onward(entry)
    if (entry.work === undefined && entry.finished === undefined) return { due: 'forget', key: packageKey(entry.name, entry.version) }
    return begin('uninstall')
  }
  if (entry.state !== 'complete' && entry.state !== 'skipped') return onward(entry)
  switch (entry.stage) {
    case 'uninstall':
      return begin('apply')
    case 'apply':
    case 'upgrade':
      return begin('config')
    case 'config':
      if (configIsDue(entry, spec)) return begin('config')
      return entry.owes ? begin('interrupt') : nothing
    case 'interrupt':
      return begin('post-interrupt')
    case 'post-interrupt':
      return configIsDue(entry, spec) ? begin('config') : nothing
  }
}

const onward = (entry: PackageRecord): Due => ({ due: 'continue', key: packageKey(entry.name, entry.version) })

/** True when the entry is what the spec asks for and nothing is due; dependents may start. */
export function isComplete(entry: PackageRecord | undefined, spec: PackageSpec): boolean {
  return entry !== undefined && entry.state === 'complete' && entry.version === spec.version && dueOfEntry(entry, spec).due === 'nothing'
}

/** True when the package stands between its first step and its completion: the host is half changed. */
export function isMidChange(entry: PackageRecord): boolean {
  return (
    entry.work !== undefined &&
    !(entry.state === 'complete' && (entry.stage === 'post-interrupt' || (entry.stage === 'config' && !entry.owes)))
  )
}
