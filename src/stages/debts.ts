import type { PackageRecord } from '../schemas/journal.ts'
import type { StatusRead } from '../schemas/package-status.ts'
import type { Interrupt, PackageSpec, StageName } from '../schemas/skyhook.ts'
import { keysOfRoll, matchedInterrupts } from './config-changes.ts'
import { isConditional, mergeInterrupts } from './interrupts.ts'
import type { MergedInterrupt } from './interrupts.ts'

/**
 * Which interrupts a package takes on, and when. What it owes in any case is owed from the beginning, so that the node is
 * empty before the first step; what it may come to owe (`when: required`) is decided by the package itself, after config has passed.
 */
export function debtOf(entry: PackageRecord | undefined, spec: PackageSpec | undefined, stage: StageName): PackageRecord['owes'] {
  if (stage === 'uninstall') return undefined // no interrupt follows an uninstall
  if (stage === 'apply' || stage === 'upgrade') return spec?.interrupt && !isConditional(spec.interrupt) ? spec.interrupt : undefined
  return stage === 'config' && spec && entry?.finished ? debtsOfConfig(entry, spec).owes : entry?.owes
}

/** What a config that starts with this spec leads to: of the keys that it touches, by the patterns of now and of before. */
export function debtsOfConfig(entry: PackageRecord, spec: PackageSpec): Pick<PackageRecord, 'owes' | 'owesIfRequired'> {
  const keys = (entry.finished ?? entry.started) ? keysOfRoll(entry, spec) : []
  const byKeys = [...matchedInterrupts(spec.configInterrupts, keys), ...matchedInterrupts(entry.configInterrupts, keys)]
  const owed = [...(entry.owes ? [entry.owes] : []), ...byKeys.filter((interrupt) => !isConditional(interrupt))]
  const owes = entry.finished ? mergeInterrupts(owed) : entry.owes // of an installation: `debtOfInstall`, from moment to moment
  const owesIfRequired = mergeInterrupts([...(spec.interrupt ? [spec.interrupt] : []), ...byKeys].filter(isConditional))
  return { ...(owes && { owes }), ...(owesIfRequired && { owesIfRequired }) }
}

/**
 * Until it is complete for the first time, a package owes what the spec says now: its own interrupt, and those of the keys that changed
 * after a config had begun with them, since something may run with the old content. What it said that it requires, stands.
 */
export function debtOfInstall(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  const keys = entry.changedKeys ?? []
  const byKeys = [...matchedInterrupts(spec.configInterrupts, keys), ...matchedInterrupts(entry.configInterrupts, keys)]
  return mergeInterrupts(dueOf(entry, [...(spec.interrupt ? [spec.interrupt] : []), ...byKeys]))
}

const dueOf = ({ interruptRequired }: PackageRecord, interrupts: readonly Interrupt[]): readonly Interrupt[] =>
  interruptRequired?.required === true ? interrupts : interrupts.filter((interrupt) => !isConditional(interrupt))

/** What a package would owe by the spec of now: its interrupt failed, or a person asks for it anew (then whatever the package said). */
export function debtOfNow(entry: PackageRecord, spec: PackageSpec): PackageRecord['owes'] {
  if (entry.owes === undefined) return spec.interrupt && always(spec.interrupt)
  if (!entry.finished) return debtOfInstall(entry, spec)
  const own = spec.interrupt && isConditional(spec.interrupt) ? [spec.interrupt] : []
  return mergeInterrupts(dueOf(entry, [...own, ...matchedInterrupts(spec.configInterrupts, entry.changedKeys ?? [])]))
}

function always(interrupt: Interrupt): Interrupt {
  const { when: _, ...rest } = interrupt
  return rest
}

/** The entry with the package's answer: what may have come to be owed is, or is not. A requirement that stands is not taken back. */
export function answered({ owesIfRequired, ...entry }: PackageRecord, { status }: Extract<StatusRead, { state: 'read' }>): PackageRecord {
  const required = status.wants.interrupt
  const stands = entry.owes !== undefined && isConditional(entry.owes)
  if (owesIfRequired === undefined || (!required && stands)) return entry
  const owed: readonly MergedInterrupt[] = [...(entry.owes ? [entry.owes] : []), ...(required ? [owesIfRequired] : [])]
  const owes = mergeInterrupts(owed)
  return { ...entry, interruptRequired: { required, bootId: status.bootId }, ...(owes && { owes }) }
}

/** The host booted since the package said that it needs an interrupt, and nothing else asks for one: a boot covers everything. */
export const isMetByBoot = ({ owes, interruptRequired }: PackageRecord, bootId: string): boolean =>
  owes !== undefined && isConditional(owes) && interruptRequired !== undefined && interruptRequired.bootId !== bootId

/** All that is left to do is an interrupt that the package asked for; what runs on the host is whole. */
export const owesRequiredOnly = ({ stage, state, owes }: PackageRecord): boolean =>
  stage === 'config' && state === 'complete' && owes !== undefined && isConditional(owes)
