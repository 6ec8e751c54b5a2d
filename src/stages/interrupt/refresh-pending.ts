/** Pending interrupts follow the spec until they are done. */
import type { PackageRecord, PendingInterrupt, RetryingPackage } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { canonicalJson } from '../../schemas/canonical-json.ts'
import { isBeingInterrupted, pendingForInstall, pendingForSpec } from './pending.ts'
import { type PlanBuilder, setEntry, requeueAt } from '../model/plan-builder.ts'
import { coversInterrupt, isConditional, mergeInterrupts } from './merge.ts'
import { isConfigDue } from '../model/package-inputs.ts'
import { type PackageState, retryState } from '../model/package-state.ts'
import { keyOf } from '../model/package-key.ts'
import { returnToConfig, withFacts } from '../model/transitions.ts'

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
