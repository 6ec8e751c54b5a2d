import { canonicalJson } from '../../schemas/canonical-json.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import type {
  MergedInterrupt,
  PackageRecord,
  PendingInterrupt,
  RetryingPackage,
  RunningPackage,
} from '../../schemas/package-record.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Interrupt, PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { isConfigDue, keysOfConfigChange } from '../model/package-inputs.ts'
import { type PackageState, retryState } from '../model/package-state.ts'
import { type PlanBuilder, requeueAt, setEntry } from '../model/plan-builder.ts'
import { keyOf } from '../model/snapshot.ts'
import { completeInterrupt, returnToConfig, withFacts } from '../model/transitions.ts'
import { coversInterrupt, isConditional, matchedInterrupts, mergeInterrupts } from './merge.ts'

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
function pendingForInstall(entry: PackageRecord, spec: PackageSpec): PendingInterrupt | undefined {
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
function isSatisfiedByBoot({ pendingInterrupt, progress }: PackageRecord, bootId: string): boolean {
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
const isBeingInterrupted = ({ interrupt }: SkyhookRecord, entry: PackageRecord): boolean =>
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

/** Pending interrupts follow the spec until they are done. */

/**
 * Until the package is complete for the first time, the current spec decides what is pending. True when the entry
 * changed.
 */
export function refreshPendingForInstall(
  builder: PlanBuilder,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
): boolean {
  if (!spec || entry.version !== spec.version || !entry.work) return false
  if (entry.config?.finished || !stagesOfInstall.has(entry.progress.stage)) return false
  const pendingInterrupt = pendingForInstall(entry, spec)
  if (canonicalJson(pendingInterrupt?.interrupt) === canonicalJson(entry.pendingInterrupt?.interrupt)) return false
  setEntry(builder, withFacts(entry, { pendingInterrupt }))
  return true
}

const stagesOfInstall: ReadonlySet<StageName> = new Set(['apply', 'upgrade', 'config'])

/**
 * Two pending interrupts are taken from the current spec: a failed one, whose correction must not wait for the next
 * version, and one that a person requested again by setting the stage. True when the entry changed.
 */
export function refreshPending(builder: PlanBuilder, entry: PackageRecord, spec: PackageSpec | undefined): boolean {
  const { progress, pendingInterrupt } = entry
  if (!spec || isBeingInterrupted(builder.record, entry) || progress.state === 'complete') return false
  const renewed = pendingForSpec(entry, spec)
  if (pendingInterrupt !== undefined) {
    const isSame = canonicalJson(renewed?.interrupt) === canonicalJson(mergeInterrupts([pendingInterrupt.interrupt]))
    if (progress.state !== 'retrying' || isSame) return false
  }
  // a person who sets the stage requires it
  const isAnswer = pendingInterrupt === undefined && renewed && isConditional(renewed.interrupt)
  const requirement = isAnswer ? { ...renewed, requiredInBoot: builder.snapshot.bootId } : renewed
  setEntry(builder, returnToConfig(entry, { restarts: 0, pendingInterrupt: requirement }))
  return true
}

/** The interrupt failed or has not started, and the configuration in the spec has changed: config runs first. */
export function returnForConfig(builder: PlanBuilder, entry: PackageRecord, spec: PackageSpec | undefined): boolean {
  const { progress } = entry
  if (!spec || progress.state === 'complete' || isBeingInterrupted(builder.record, entry)) return false
  if (!isConfigDue(entry, spec)) return false
  setEntry(builder, returnToConfig(entry, { ...entry, restarts: 0 }))
  return true
}

/**
 * A post-interrupt fails, and the current spec has another interrupt before it, or none. True when the entry changed.
 */
export function refreshMet(builder: PlanBuilder, entry: RetryingPackage, spec: PackageSpec | undefined): boolean {
  const { metInterrupt, config } = entry
  if (!spec || !metInterrupt) return false
  const renewed = pendingForSpec({ ...entry, pendingInterrupt: metInterrupt }, spec)
  const isDropped = renewed === undefined && config?.finished === undefined
  const isMet = renewed === undefined || coversInterrupt(metInterrupt.interrupt, renewed.interrupt)
  if (isMet && !isDropped) return false
  setEntry(builder, returnToConfig(entry, { restarts: 0, pendingInterrupt: renewed }))
  return true
}

/** Pending and not yet running, or failed and waiting for its next attempt. */
export function interruptState(builder: PlanBuilder, entry: PackageRecord): PackageState {
  const { progress, pendingInterrupt } = entry
  const refusal = isBeingInterrupted(builder.record, entry) ? undefined : refuseReboot(builder, entry, pendingInterrupt)
  if (refusal) return refusal
  if (progress.state !== 'retrying' || progress.retryAtMs <= builder.snapshot.nowMs)
    return { state: 'interrupt', key: keyOf(entry) }
  requeueAt(builder, progress.retryAtMs)
  return retryState(entry, progress, builder.snapshot.nowMs)
}

/** If the host keeps its boot id over a reboot, the reboot is refused before slot, cordon and drain. */
export function refuseReboot(
  { snapshot: { rebootBarrier } }: PlanBuilder,
  entry: Pick<PackageRecord, 'name' | 'version'>,
  pendingInterrupt: PendingInterrupt | undefined,
): PackageState | undefined {
  if (rebootBarrier === undefined || pendingInterrupt?.interrupt.type !== 'reboot') return undefined
  return {
    state: 'blocked',
    atPreparation: true,
    reason: 'RebootRefused',
    message: `package ${entry.name} needs a reboot: ${rebootBarrier}`,
    package: keyOf(entry),
  }
}

/** Identifies the attempt of an entry: an answer for an earlier attempt does not count. */
export function requestIdOf(builder: PlanBuilder, { name, version, work, progress }: RunningPackage): string {
  const { startedAtMs, number } = progress.attempt
  const requestId = [builder.view.metadata.uid, name, version, work.generation, startedAtMs, number].join('/')
  builder.needed.add(requestId)
  return requestId
}

/** What the package reports about a conditional interrupt: read once, when config has passed. */
export function requestStatus(builder: PlanBuilder, entry: RunningPackage): StatusReadResult | 'requested' {
  const { name: skyhook } = builder.view.metadata
  const requestId = requestIdOf(builder, entry)
  const requestedStatus = builder.snapshot.requestedStatuses.get(requestId)
  if (requestedStatus) return requestedStatus
  builder.actions.push({
    do: 'readStatus',
    key: `status/${skyhook}/${entry.name}`,
    skyhook,
    package: entry.name,
    requestId,
  })
  return 'requested'
}

/** A requirement that another reboot or a power cut has met. True when the entry changed. */
export function satisfyByBoot(builder: PlanBuilder, entry: PackageRecord): boolean {
  const { record, snapshot, view } = builder
  if (isBeingInterrupted(record, entry) || !isSatisfiedByBoot(entry, snapshot.bootId)) return false
  setEntry(builder, completeInterrupt(entry, undefined))
  const { lifecycle } = record
  if (lifecycle) builder.record = { ...builder.record, lifecycle: { ...lifecycle, interruptedAtMs: snapshot.nowMs } }
  const interrupt = `${entry.pendingInterrupt?.interrupt.type}, replaced by a boot`
  builder.events.push({ type: 'interrupted', skyhook: view.metadata.name, interrupt })
  return true
}
