import type { PackageRecord } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Interrupt, PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { keysOfConfigChange } from '../model/package-inputs.ts'
import { isConditional, mergeInterrupts, type MergedInterrupt, matchedInterrupts } from './merge.ts'

/**
 * Which interrupts a package takes on, and when. What it owes in any case is owed from the beginning, so that the node
 * is empty before the first step; what it may come to owe (`when: required`) is decided by the package itself, after
 * config has passed.
 * /
 */
export function pendingForStage(
  entry: PackageRecord | undefined,
  spec: PackageSpec | undefined,
  stage: StageName,
): PackageRecord['pendingInterrupt'] {
  if (stage === 'uninstall') return undefined // no interrupt follows an uninstall
  if (stage === 'apply' || stage === 'upgrade')
    return spec?.interrupt && !isConditional(spec.interrupt) ? spec.interrupt : undefined
  return stage === 'config' && spec && entry?.finishedInputs
    ? pendingForConfigChange(entry, spec)
    : entry?.pendingInterrupt
}

/**
 * What a config that starts with this spec owes: for the keys that it touches, by the patterns of now and of before,
 * both may have taken effect.
 */
export function pendingForConfigChange(entry: PackageRecord, spec: PackageSpec): PackageRecord['pendingInterrupt'] {
  const keyed = interruptsOfKeys(entry, spec, keysOfConfigChange(entry, spec)).filter(
    (interrupt) => !isConditional(interrupt),
  )
  return mergeInterrupts([...(entry.pendingInterrupt ? [entry.pendingInterrupt] : []), ...keyed])
}

/**
 * What a package owes that was never complete: its own interrupt, and those of the keys that changed after a config had
 * begun with them, because something may run with the old content. What it said to be required stays so.
 * /
 */
export function pendingForInstall(entry: PackageRecord, spec: PackageSpec): PackageRecord['pendingInterrupt'] {
  const all = [...(spec.interrupt ? [spec.interrupt] : []), ...interruptsOfKeys(entry, spec, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter((interrupt) => isInterruptRequired(entry) || !isConditional(interrupt)))
}

/** What a package would owe by the spec of now: its interrupt failed, or a person asks for it anew. */
export function pendingForSpec(entry: PackageRecord, spec: PackageSpec): PackageRecord['pendingInterrupt'] {
  if (entry.pendingInterrupt === undefined) return spec.interrupt
  if (!entry.finishedInputs) return pendingForInstall(entry, spec)
  const own = spec.interrupt && isConditional(spec.interrupt) ? [spec.interrupt] : []
  const all = [...own, ...matchedInterrupts(spec.configInterrupts, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter((interrupt) => isInterruptRequired(entry) || !isConditional(interrupt)))
}

/** What a package owes if it says so, now that its config has passed; undefined = nothing is left to it. */
export function pendingIfRequired(entry: PackageRecord, spec: PackageSpec): PackageRecord['pendingInterrupt'] {
  const all = [...(spec.interrupt ? [spec.interrupt] : []), ...interruptsOfKeys(entry, spec, entry.changedKeys ?? [])]
  return mergeInterrupts(all.filter(isConditional))
}

/**
 * The entry with the package's answer: what may have come to be owed is, or is not. A requirement that stands is not
 * taken back.
 */
export function withInterruptAnswer(
  entry: PackageRecord,
  conditionalInterrupt: MergedInterrupt,
  { status }: Extract<StatusReadResult, { state: 'read' }>,
): PackageRecord {
  const required = status.requests.interrupt
  const isRequirementPending = entry.pendingInterrupt !== undefined && isConditional(entry.pendingInterrupt)
  if (!required && isRequirementPending) return entry
  const pendingInterrupt = mergeInterrupts([
    ...(entry.pendingInterrupt ? [entry.pendingInterrupt] : []),
    ...(required ? [conditionalInterrupt] : []),
  ])
  return {
    ...entry,
    interruptRequirement: { required, bootId: status.bootId },
    ...(pendingInterrupt && { pendingInterrupt }),
  }
}

/**
 * The host booted since the package said that it needs an interrupt, and nothing else asks for one: a boot covers
 * everything.
 */
export const isSatisfiedByBoot = ({ pendingInterrupt, interruptRequirement }: PackageRecord, bootId: string): boolean =>
  pendingInterrupt !== undefined &&
  isConditional(pendingInterrupt) &&
  interruptRequirement !== undefined &&
  interruptRequirement.bootId !== bootId

/** All that is left to do is an interrupt that the package asked for; what runs on the host is whole. */
export const isOnlyConditionalInterruptPending = ({ stage, state, pendingInterrupt }: PackageRecord): boolean =>
  stage === 'config' && state === 'complete' && pendingInterrupt !== undefined && isConditional(pendingInterrupt)

const interruptsOfKeys = (entry: PackageRecord, spec: PackageSpec, keys: readonly string[]): readonly Interrupt[] => [
  ...matchedInterrupts(spec.configInterrupts, keys),
  ...matchedInterrupts(entry.configInterrupts, keys),
]

const isInterruptRequired = ({ interruptRequirement }: PackageRecord): boolean =>
  interruptRequirement?.required === true
