import type { PackageRecord } from '../../schemas/journal.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import type { Interrupt, PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { keysOfRoll, matchedInterrupts } from '../model/package-inputs.ts'
import { isConditional, mergeInterrupts } from './merge.ts'
import type { MergedInterrupt } from './merge.ts'

/**
 * Which interrupts a package takes on, and when. What it owes in any case is owed from the beginning, so that the node is
 * empty before the first step; what it may come to owe (`when: required`) is decided by the package itself, after config has passed.
 */
export function debtOf(entry: PackageRecord | undefined, spec: PackageSpec | undefined, stage: StageName): PackageRecord['owes'] {
  if (stage === 'uninstall') return undefined // no interrupt follows an uninstall
  if (stage === 'apply' || stage === 'upgrade') return spec?.interrupt && !isConditional(spec.interrupt) ? spec.interrupt : undefined
  return stage === 'config' && spec && entry?.finished ? debtOfRoll(entry, spec) : entry?.owes
}

/** What a config that starts with this spec owes: for the keys that it touches, by the patterns of now and of before, both may have taken effect. */
export function debtOfRoll(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  const keyed = interruptsOfKeys(entry, spec, keysOfRoll(entry, spec)).filter((interrupt) => !isConditional(interrupt))
  return mergeInterrupts([...(entry.owes ? [entry.owes] : []), ...keyed])
}

/**
 * What a package owes that was never complete: its own interrupt, and those of the keys that changed after a config had begun with
 * them, because something may run with the old content. What it said to be required stays so.
 */
export function debtOfInstall(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  const all = [...(spec.interrupt ? [spec.interrupt] : []), ...interruptsOfKeys(entry, spec, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter((interrupt) => isRequired(entry) || !isConditional(interrupt)))
}

/** What a package would owe by the spec of now: its interrupt failed, or a person asks for it anew. */
export function debtOfNow(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  if (entry.owes === undefined) return spec.interrupt
  if (!entry.finished) return debtOfInstall(entry, spec)
  const own = spec.interrupt && isConditional(spec.interrupt) ? [spec.interrupt] : []
  const all = [...own, ...matchedInterrupts(spec.configInterrupts, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter((interrupt) => isRequired(entry) || !isConditional(interrupt)))
}

/** What a package owes if it says so, now that its config has passed; undefined = nothing is left to it. */
export function debtIfRequired(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  const all = [...(spec.interrupt ? [spec.interrupt] : []), ...interruptsOfKeys(entry, spec, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter(isConditional))
}

/** The entry with the package's answer: what may have come to be owed is, or is not. A requirement that stands is not taken back. */
export function answered(
  entry: PackageRecord,
  owesIfRequired: MergedInterrupt,
  { status }: Extract<StatusRead, { state: 'read' }>,
): PackageRecord {
  const required = status.requests.interrupt
  const stands = entry.owes !== undefined && isConditional(entry.owes)
  if (!required && stands) return entry
  const owes = mergeInterrupts([...(entry.owes ? [entry.owes] : []), ...(required ? [owesIfRequired] : [])])
  return { ...entry, interruptRequired: { required, bootId: status.bootId }, ...(owes && { owes }) }
}

/** The host booted since the package said that it needs an interrupt, and nothing else asks for one: a boot covers everything. */
export const isMetByBoot = ({ owes, interruptRequired }: PackageRecord, bootId: string): boolean =>
  owes !== undefined && isConditional(owes) && interruptRequired !== undefined && interruptRequired.bootId !== bootId

/** All that is left to do is an interrupt that the package asked for; what runs on the host is whole. */
export const owesRequiredOnly = ({ stage, state, owes }: PackageRecord): boolean =>
  stage === 'config' && state === 'complete' && owes !== undefined && isConditional(owes)

const interruptsOfKeys = (entry: PackageRecord, spec: PackageSpec, keys: readonly string[]): readonly Interrupt[] => [
  ...matchedInterrupts(spec.configInterrupts, keys),
  ...matchedInterrupts(entry.configInterrupts, keys),
]

const isRequired = ({ interruptRequired }: PackageRecord): boolean => interruptRequired?.required === true
