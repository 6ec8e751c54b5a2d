import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'
import {
  isRetrying,
  openStepOf,
  type PackageProgress,
  type PackageRecord,
  type RetryingPackage,
} from '../../schemas/package-record.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { isConfigDue } from '../model/package-inputs.ts'
import { isLeftBehind, isOnHost, publishedState } from '../model/package-state.ts'
import { newPackage } from '../model/transitions.ts'

/** The next work of one package of a Skyhook on this node. */
export type Due =
  /** Complete for this spec, or staying as it is on purpose. */
  | { readonly due: 'nothing' }
  /** The entry's stage is due, running or failed: continue with it. */
  | { readonly due: 'continue'; readonly entry: PackageRecord }
  | { readonly due: 'begin'; readonly entry: PackageRecord; readonly stage: StageName }
  /** Nothing of this entry ever reached the host, or another entry has the state of the host: it is dropped. */
  | { readonly due: 'forget'; readonly entry: PackageRecord }
  /** Its uninstall failed too often, and a package that the spec does not have cannot be corrected. */
  | { readonly due: 'leave-behind'; readonly entry: RetryingPackage }

const nothingDue: Due = { due: 'nothing' }
const begin = (entry: PackageRecord, stage: StageName): Due => ({ due: 'begin', entry, stage })

/**
 * The stage machine of one package name: entries of the journal against the spec (undefined = removed from the
 * Skyhook; `isDeleted`: with the whole of it). The first line that applies:
 *
 * | the host has                        | the spec says               | due                                      |
 * |-------------------------------------|-----------------------------|------------------------------------------|
 * | an uninstall that failed repeatedly | nothing                     | leave the rest behind                    |
 * | an unfinished uninstall             | nothing, uninstall or lower | continue with it                         |
 * | an unfinished uninstall             | its version, or higher      | apply                                    |
 * | a version that did not even start   | nothing, or another version | forget it                                |
 * | versions                            | nothing                     | uninstall or keep each, by its policy    |
 * | a started or retained version       | uninstall                   | uninstall of the newest                  |
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
  const sorted = entries.toSorted((a, b) => compareVersions(b.version, a.version))
  const active = sorted.filter(({ progress }) => progress.state !== 'retained')
  const unstarted = active.find((entry) => entry.untouched && entry.version !== spec?.version)
  if (unstarted) return { due: 'forget', entry: unstarted }
  const uninstalling = active.find(({ progress }) => progress.stage === 'uninstall' && !isPassed(progress))
  if (uninstalling) return dueOfUninstall(name, spec, active, uninstalling)
  if (spec === undefined) return isDeleted ? dueOfDeleted(sorted) : dueOfRemoved(active)

  const started = active.filter(isOnHost)
  const newest = started[0]
  const entry = active.find(({ version }) => version === spec.version)
  if (spec.uninstall?.enabled === true && spec.uninstall.apply === true) {
    const installed = newest ?? (active.length === 0 ? sorted.find(isOnHost) : undefined)
    if (installed) return begin(installed, 'uninstall')
    const unwanted = active.find((other) => other !== entry || other.progress.stage !== 'uninstall')
    return unwanted ? { due: 'forget', entry: unwanted } : nothingDue
  }
  const higher = started.find(({ version }) => compareVersions(version, spec.version) > 0) // also one that only started
  if (higher && spec.uninstall?.enabled !== false) return begin(higher, 'uninstall')
  const stored = entries.find(({ version }) => version === spec.version)
  if (higher) return begin(stored ?? newPackage(name, spec, 'apply'), 'apply')
  const hasOlder = started.some((other) => other !== entry)
  if (entry) return dueOfEntry(entry, spec, hasOlder)
  const other = active.find((one) => !started.includes(one))
  if (other) return { due: 'forget', entry: other }
  const stage = newest === undefined ? 'apply' : 'upgrade'
  return begin(stored ?? newPackage(name, spec, stage), stage)
}

/** Failed attempts after which the uninstall of a package that left the spec is given up. */
const maxUninstallAttempts = 3

/**
 * A package that is put back is applied again: it is unknown what its uninstall removed. An uninstall that is about to
 * end, between two steps or during the removal of its files, ends first.
 */
function dueOfUninstall(
  name: string,
  spec: PackageSpec | undefined,
  active: readonly PackageRecord[],
  entry: PackageRecord,
): Due {
  const { progress } = entry
  if (spec === undefined && isRetrying(entry) && entry.restarts >= maxUninstallAttempts)
    return { due: 'leave-behind', entry }
  const isAboutToEnd = progress.state === 'running' && openStepOf(progress) === undefined
  if (spec === undefined || isAboutToEnd || isUninstallDue(entry, spec)) return { due: 'continue', entry }
  const returned = active.find(({ version }) => version === spec.version)
  const other = active.find((one) => one !== returned && one !== entry)
  if (other) return { due: 'forget', entry: other }
  return begin(returned ?? newPackage(name, spec, 'apply'), 'apply')
}

/** The spec has the package, and still requires that this version leaves the host. */
const isUninstallDue = ({ version }: PackageRecord, { uninstall, ...spec }: PackageSpec): boolean =>
  (uninstall?.enabled === true && uninstall.apply === true) ||
  (uninstall?.enabled !== false && compareVersions(version, spec.version) > 0)

/** A package removed from the Skyhook is uninstalled unless its policy keeps it. */
const dueOfRemoved = (active: readonly PackageRecord[]): Due =>
  dueOfLeaving(active, ({ uninstall }) => uninstall?.enabled !== false)

/**
 * A package deleted with its Skyhook is uninstalled only if its policy requires it, and then also versions that an
 * earlier policy retained.
 */
const dueOfDeleted = (entries: readonly PackageRecord[]): Due =>
  dueOfLeaving(
    entries.filter((entry) => !isLeftBehind(entry)),
    ({ uninstall }) => uninstall?.enabled === true,
  )

function dueOfLeaving(entries: readonly PackageRecord[], isUninstalled: (entry: PackageRecord) => boolean): Due {
  for (const entry of entries) {
    if (!isOnHost(entry)) return { due: 'forget', entry }
    if (isUninstalled(entry)) return begin(entry, 'uninstall')
  }
  return nothingDue
}

/** The stage that follows the one that passed. */
function dueOfEntry(entry: PackageRecord, spec: PackageSpec, hasOlderVersion: boolean): Due {
  const { progress, pendingInterrupt } = entry
  if (progress.stage === 'post-interrupt' && progress.state !== 'running' && isConfigDue(entry, spec))
    return begin(entry, 'config') // also a failed one: its correction must reach the host
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
      return nothingDue
  }
}

/** Nothing is left to do in the stage. */
const isPassed = (progress: PackageProgress): boolean => ['complete', 'skipped'].includes(publishedState(progress))

/** True when a package matches the spec and nothing is due; dependents may start. */
export const isComplete = (name: string, spec: PackageSpec, entries: readonly PackageRecord[]): boolean =>
  dueOf(name, spec, entries).due === 'nothing'

/** True when the package is between its first step and its completion: the host is half changed. */
export const isMidChange = (entry: PackageRecord): boolean => entry.work !== undefined && isUnfinished(entry)

/** The same, including a package that the operator has started. */
export function isUnfinished({ work, adopted, progress, pendingInterrupt }: PackageRecord): boolean {
  if (work === undefined && adopted !== true) return false
  if (progress.state === 'retained' || progress.state === 'skipped') return false
  const { state, stage } = progress
  const isFinal = stage === 'post-interrupt' || (stage === 'config' && !pendingInterrupt)
  return !(state === 'complete' && isFinal)
}

/**
 * Package versions: `v` optional, one to three numeric parts, leading zeros allowed (`2024.05.10`), `-pre`, `+build`.
 * Strictly ordered by semver precedence on the numbers; build metadata does not count.
 */
type Version = { readonly numbers: readonly [bigint, bigint, bigint]; readonly prerelease: readonly string[] }

const syntax =
  /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

/** The version, or undefined for other text. */
export function parseVersion(text: string): Version | undefined {
  const match = syntax.exec(text)
  if (!match) return undefined
  const [, major = '0', minor = '0', patch = '0', prerelease] = match
  return {
    numbers: [BigInt(major), BigInt(minor), BigInt(patch)],
    prerelease: prerelease === undefined ? [] : prerelease.split('.'),
  }
}

/** Semver precedence: negative, zero or positive. Text that is not a version sorts before every version. */
export function compareVersions(left: string, right: string): number {
  if (left === right) return 0
  const a = parseVersion(left)
  const b = parseVersion(right)
  if (!a || !b) return Number(a !== undefined) - Number(b !== undefined)
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n
    if (number !== other) return number < other ? -1 : 1
  }
  return comparePrerelease(a.prerelease, b.prerelease)
}

function comparePrerelease(a: readonly string[], b: readonly string[]): number {
  // a release comes after its pre-releases
  if (a.length === 0 || b.length === 0) return Number(b.length > 0) - Number(a.length > 0)
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const left = a[index]
    const right = b[index]
    if (left === undefined) return -1
    if (right === undefined) return 1
    if (left === right) continue
    const leftNumeric = /^\d+$/.test(left)
    const rightNumeric = /^\d+$/.test(right)
    if (leftNumeric && rightNumeric) {
      const difference = BigInt(left) - BigInt(right)
      if (difference !== 0n) return difference < 0n ? -1 : 1
      continue
    }
    if (leftNumeric !== rightNumeric) return leftNumeric ? -1 : 1
    return left < right ? -1 : 1
  }
  return 0
}

/** True when `version` satisfies a `dependsOn` value: exactly that string, or a version inside a semver range. */
export function satisfiesConstraint(version: string, constraint: string): boolean {
  if (version === constraint) return true
  if (parseVersion(constraint)) return false // an exact version is compared as written, as the operator does
  const normalized = normalize(version)
  return (
    normalized !== undefined &&
    validRange(constraint) !== null &&
    satisfies(normalized, constraint, { includePrerelease: true })
  )
}

/** True when the text can stand in `dependsOn`. */
export const isVersionOrRange = (text: string): boolean =>
  parseVersion(text) !== undefined || (text.trim() !== '' && validRange(text) !== null)

function normalize(version: string): string | undefined {
  const parsed = parseVersion(version)
  if (!parsed) return undefined
  const prerelease = parsed.prerelease.map((part) => (/^\d+$/.test(part) ? BigInt(part).toString() : part)).join('.')
  return parsed.numbers.join('.') + (prerelease === '' ? '' : `-${prerelease}`)
}
