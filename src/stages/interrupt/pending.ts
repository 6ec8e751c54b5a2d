import type { MergedInterrupt, PackageRecord, PendingInterrupt, SkyhookRecord } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import type { Stage } from '../../schemas/package-config.ts'
import { keyOf } from '../model/package-key.ts'
import { keysOfConfigChange } from '../model/package-inputs.ts'
import { isConditional, matchedInterrupts, mergeInterrupts } from './merge.ts'

/**
 * Which interrupts are pending for a package, and when. An unconditional interrupt is pending from the first stage, so
 * that the node is empty before the first step. A conditional one (`when: required`) is decided by the package itself,
 * after config has passed.
 */
export function pendingForStage(
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  stage: Stage,
): PendingInterrupt | undefined {
  switch (stage) {
    case 'uninstall': // no interrupt follows an uninstall
      return undefined
    case 'apply':
    case 'upgrade':
      return spec?.interrupt && !isConditional(spec.interrupt) ? { interrupt: spec.interrupt } : undefined
    case 'config':
      return spec && entry.config?.finished ? pendingForConfigChange(entry, spec) : entry.pendingInterrupt
    case 'post-interrupt':
      return entry.pendingInterrupt
  }
}

/**
 * What a config that starts with this spec makes pending: for the keys that it touches, by the current and the previous
 * patterns, because both may have taken effect.
 */
export function pendingForConfigChange(entry: PackageRecord, spec: PackageSpec): PendingInterrupt | undefined {
  const keyed = interruptsOfKeys(entry, spec, keysOfConfigChange(entry, spec)).filter(
    (interrupt) => !isConditional(interrupt),
  )
  const pending = entry.pendingInterrupt ? [entry.pendingInterrupt.interrupt] : []
  return withRequirement(mergeInterrupts([...pending, ...keyed]), entry.pendingInterrupt?.requiredInBoot)
}

/**
 * What is pending for a package that was never complete: its own interrupt, and those of the keys that changed after a
 * config had started with them, because something may run with the old content. An interrupt that it required stays
 * required.
 */
export function pendingForInstall(entry: PackageRecord, spec: PackageSpec): PendingInterrupt | undefined {
  return pendingOf(entry, [...ownInterrupt(spec), ...interruptsOfKeys(entry, spec, entry.config?.changedKeys ?? [])])
}

/** What the current spec makes pending: the interrupt failed, or a person requests it again. */
export function pendingForSpec(entry: PackageRecord, spec: PackageSpec): PendingInterrupt | undefined {
  if (entry.pendingInterrupt === undefined) return spec.interrupt && { interrupt: spec.interrupt }
  if (!entry.config?.finished) return pendingForInstall(entry, spec)
  const keyed = matchedInterrupts(spec.configInterrupts, entry.config.changedKeys)
  return pendingOf(entry, [...ownInterrupt(spec).filter(isConditional), ...keyed])
}

/** What the package can make pending, now that its config has passed; undefined = nothing. */
export function pendingIfRequired(entry: PackageRecord, spec: PackageSpec): MergedInterrupt | undefined {
  const all = [...ownInterrupt(spec), ...interruptsOfKeys(entry, spec, entry.config?.changedKeys ?? [])]
  return mergeInterrupts(all.filter(isConditional))
}

/** The pending interrupt after the package's answer. A requirement that is pending already stays. */
export function pendingAfterAnswer(
  { pendingInterrupt }: PackageRecord,
  conditionalInterrupt: MergedInterrupt,
  { status }: Extract<StatusReadResult, { state: 'read' }>,
): PendingInterrupt | undefined {
  const pending = pendingInterrupt ? [pendingInterrupt.interrupt] : []
  if (status.requests.interrupt)
    return withRequirement(mergeInterrupts([...pending, conditionalInterrupt]), status.bootId)
  return pending.some(isConditional) ? pendingInterrupt : withRequirement(mergeInterrupts(pending), undefined)
}

/**
 * A boot covers everything: the host booted since a reboot was refused, or since the package reported that it needs an
 * interrupt, and nothing else requires one.
 */
export function isSatisfiedByBoot({ pendingInterrupt, progress }: PackageRecord, bootId: string): boolean {
  const refusedInBoot = progress.state === 'retrying' ? progress.failure.refusedInBoot : undefined
  const requiredInBoot =
    pendingInterrupt && isConditional(pendingInterrupt.interrupt) ? pendingInterrupt.requiredInBoot : undefined
  return [refusedInBoot, requiredInBoot].some((earlier) => earlier !== undefined && earlier !== bootId)
}

/** Only an interrupt is left, and the package itself requested it: the host is not half changed. */
export const isOnlyConditionalInterruptPending = ({ progress, pendingInterrupt }: PackageRecord): boolean =>
  progress.state === 'complete' &&
  progress.stage === 'config' &&
  pendingInterrupt !== undefined &&
  isConditional(pendingInterrupt.interrupt)

/** The interrupt of this package is running, with those of other packages. */
export const isBeingInterrupted = ({ interrupt }: SkyhookRecord, entry: PackageRecord): boolean =>
  interrupt?.owners.includes(keyOf(entry)) === true

const ownInterrupt = ({ interrupt }: PackageSpec): readonly Interrupt[] => (interrupt ? [interrupt] : [])

const interruptsOfKeys = (entry: PackageRecord, spec: PackageSpec, keys: readonly string[]): readonly Interrupt[] => [
  ...matchedInterrupts(spec.configInterrupts, keys),
  ...matchedInterrupts(entry.config?.interrupts, keys),
]

/** The interrupts that are due: conditional ones only if the package requested them. */
function pendingOf({ pendingInterrupt }: PackageRecord, all: readonly Interrupt[]): PendingInterrupt | undefined {
  const requiredInBoot = pendingInterrupt?.requiredInBoot
  const due = all.filter((interrupt) => requiredInBoot !== undefined || !isConditional(interrupt))
  return withRequirement(mergeInterrupts(due), requiredInBoot)
}

const withRequirement = (
  interrupt: MergedInterrupt | undefined,
  requiredInBoot: string | undefined,
): PendingInterrupt | undefined => interrupt && { interrupt, requiredInBoot }
