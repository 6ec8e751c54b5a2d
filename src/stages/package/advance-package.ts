import {
  isRetrying,
  isRunning,
  openStepOf,
  type PackageRecord,
  type RetryingPackage,
  type RunningPackage,
} from '../../schemas/package-record.ts'
import { ownValue } from '../../schemas/json.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { dependsOnSystemd } from '../../schemas/environment-variable.ts'
import {
  interruptState,
  pendingForStage,
  refreshMet,
  refreshPending,
  refreshPendingForInstall,
  refuseReboot,
  returnForConfig,
  satisfyByBoot,
} from '../interrupt/pending.ts'
import { type AdvanceOutcome, type PackageState, type Permission, retryState } from '../model/package-state.ts'
import {
  type PlanBuilder,
  entriesOf,
  removeEntry,
  requestPreparation,
  requeueAt,
  setEntry,
} from '../model/plan-builder.ts'
import type { References } from '../model/plan.ts'
import { type FailedPreparation, keyOf, packageKey } from '../model/snapshot.ts'
import { dropAttempt, finishPackage, leaveBehind, retainPackage } from '../model/transitions.ts'
import { advanceStage } from './advance-stage.ts'
import { cancel, isCanceling, makesWay } from './cancel.ts'
import { dueOf, isComplete, isMidChange, isUnfinished } from './next-stage.ts'
import { isRunRequested, recordRunRequest } from './run-requests.ts'
import { missingInputs } from './spec-problems.ts'
import { attemptInputsHash, isSuperseded, retryFailedStage, startStage } from './start-stage.ts'

/** Advances one package as far as possible now: records results, ends and starts stages, and names steps to start. */
export function advancePackage(builder: PlanBuilder, name: string, permission: Permission): PackageState {
  const isDeleted = builder.view.metadata.deletionTimestamp !== undefined
  const spec = isDeleted ? undefined : ownValue(builder.view.spec.packages, name) // nothing more is required of it
  if (isCanceling(builder.record, name)) return { state: 'running' }
  for (;;) {
    const outcome = advanceOnce(builder, { name, spec, isDeleted, permission })
    if (outcome !== 'again') return outcome
  }
}

type PackageContext = {
  readonly name: string
  readonly spec: PackageSpec | undefined
  readonly isDeleted: boolean
  readonly permission: Permission
}

function advanceOnce(builder: PlanBuilder, context: PackageContext): AdvanceOutcome {
  const { name, spec, isDeleted, permission } = context
  const due = dueOf(name, spec, entriesOf(builder.record, name), isDeleted)
  if (due.due === 'nothing') return advanceFinished(builder, context)
  const { entry } = due
  if (due.due === 'forget') {
    if (openStepOf(entry.progress) && !cancel(builder, entry, permission)) return { state: 'running' }
    // the step may have started before it was stopped
    if (openStepOf(entry.progress) === undefined) removeEntry(builder, keyOf(entry))
    return 'again'
  }
  if (due.due === 'leave-behind') {
    const { message } = due.entry.progress.failure
    setEntry(builder, leaveBehind(due.entry))
    builder.events.push({ type: 'uninstallFailed', skyhook: builder.view.metadata.name, package: name, message })
    return 'again'
  }
  if (refreshPendingForInstall(builder, entry, spec)) return 'again'
  const stage = due.due === 'begin' ? due.stage : entry.progress.stage
  if (stage === 'interrupt') {
    const isChanged =
      refreshPending(builder, entry, spec) || returnForConfig(builder, entry, spec) || satisfyByBoot(builder, entry)
    return isChanged ? 'again' : interruptState(builder, entry)
  }
  if (stage === 'post-interrupt' && isRetrying(entry) && refreshMet(builder, entry, spec)) return 'again'
  if (due.due === 'begin' || !(isRunning(entry) || isRetrying(entry)))
    return begin(builder, { entry, spec, stage, permission })
  if (spec && isSuperseded(entry, spec)) return restartSuperseded(builder, entry, spec, permission)
  return isRunning(entry)
    ? continueStage(builder, entry, spec, permission)
    : retryWhenDue(builder, entry, spec, permission)
}

/** No stage is due: the started work is finished, unless the host itself requests another run. */
function advanceFinished(builder: PlanBuilder, { name, spec, permission }: PackageContext): AdvanceOutcome {
  const superseded = entryWithOpenStep(builder, name)
  if (superseded && !cancel(builder, superseded, permission)) return { state: 'running' }
  const entries = entriesOf(builder.record, name)
  if (!spec) {
    for (const entry of entries.filter(isUnfinished)) setEntry(builder, retainPackage(entry))
    return { state: 'complete' }
  }
  const found = entries.find(({ version }) => version === spec.version)
  if (!found) return { state: 'complete' }
  const entry = found.progress.state === 'complete' ? finishPackage(found) : found
  setEntry(builder, entry)
  if (!isRunRequested(builder, spec, entry)) return { state: 'complete' }
  const outcome = begin(builder, { entry, spec, stage: 'config', permission })
  if (outcome === 'again') recordRunRequest(builder, keyOf(entry))
  return outcome
}

/** The entry of this name that has, or may soon have, a step on the host. */
const entryWithOpenStep = (builder: PlanBuilder, name: string): PackageRecord | undefined =>
  entriesOf(builder.record, name).find(({ progress }) => openStepOf(progress))

type Beginning = {
  readonly entry: PackageRecord
  readonly spec: PackageSpec | undefined
  readonly stage: Stage
  readonly permission: Permission
}

/** Starts a stage, or reports what it waits for. */
function begin(builder: PlanBuilder, { entry, spec, stage, permission }: Beginning): AdvanceOutcome {
  const { name } = entry
  const isInstall = stage === 'apply' || stage === 'upgrade'
  const isNewWork = isInstall || entry.work === undefined || (spec !== undefined && isSuperseded(entry, spec))
  // a half-done stage continues, except for a package that is put back during its uninstall
  const isNewChange = !isMidChange(entry) || (isInstall && entry.progress.stage === 'uninstall')
  const references = isNewChange && stage !== 'uninstall' ? referencesOf(spec) : undefined
  // the uninstall removes its own version, even if the operator installed it
  const isOfSpec = isNewWork && spec !== undefined && (isInstall || spec.version === entry.version)
  const { image, version, containerSHA: digest } = isOfSpec ? spec : { ...entry, containerSHA: entry.work?.digest }
  const pendingInterrupt = pendingForStage(entry, spec, stage)
  const refusal = isNewChange ? refuseReboot(builder, entry, pendingInterrupt) : undefined
  if (refusal) return refusal
  // also for waiting packages, so that a wrong image shows before work starts
  const requested = { image, version, ...(digest && { digest }), ...(references && { references }) }
  const prepared = requestPreparation(builder, requested, builder.depth)
  if (prepared.state === 'failed') return blockedBy({ name, version }, prepared)
  const isReady = prepared.state === 'ready'
  const missing =
    isReady &&
    isNewChange &&
    stage !== 'uninstall' &&
    spec &&
    missingInputs(prepared.config, spec, stage, prepared.ownConfigFiles)
  if (missing)
    return {
      state: 'blocked',
      atPreparation: true,
      reason: 'InvalidSpec',
      message: `package ${name}: ${missing}`,
      package: packageKey(name, version),
    }
  const isChecked = prepared.state === 'checked' && builder.depth === 'manifest'
  // of another version or stage; stopped only now that its successor is prepared
  const superseded = entryWithOpenStep(builder, name)
  if (superseded && !makesWay(builder, superseded, permission, isReady || isChecked)) return { state: 'running' }
  if (stage !== 'uninstall' && spec && !areDependenciesComplete(builder, spec)) return { state: 'dependency' }
  if (isLocked(builder, name)) return { state: 'dependency' }
  const hasPendingInterrupt = pendingInterrupt !== undefined
  if (isChecked) return { state: 'checked', pendingInterrupt: hasPendingInterrupt }
  if (!isReady) return { state: 'preparing' }
  if (isNewChange && hasPendingInterrupt && !permission.isDrained && permission.mayStart) return { state: 'drain' }
  if (!permission.mayStart) return { state: 'ready', stage, pendingInterrupt: hasPendingInterrupt }
  if (stage === 'apply') retainOthers(builder, entry)
  startStage(builder, { entry: builder.record.packages[keyOf(entry)] ?? entry, spec, stage, prepared, isNewWork })
  return 'again'
}

const referencesOf = ({ env = [], resources }: Pick<PackageSpec, 'env' | 'resources'> = {}): References | undefined =>
  env.some(({ value = '', valueFrom }) => valueFrom || dependsOnSystemd(value))
    ? { env, ...(resources && { resources }) }
    : undefined

/**
 * Applied over another version that its policy does not uninstall: the other version stays, but the host does not run
 * it. If its uninstall was stopped, its state is unknown and not shown.
 */
function retainOthers(builder: PlanBuilder, { name, version }: PackageRecord): void {
  const others = entriesOf(builder.record, name).filter((other) => other.version !== version)
  for (const other of others) {
    if ((other.work === undefined && other.adopted !== true) || other.progress.state === 'retained') continue
    if (other.progress.stage === 'uninstall') removeEntry(builder, keyOf(other))
    else setEntry(builder, retainPackage(other))
  }
}

const blockedBy = (
  prepared: Pick<PackageRecord, 'name' | 'version'>,
  { reason, message, code, failingSinceMs }: FailedPreparation,
): PackageState => ({
  state: 'blocked',
  atPreparation: true,
  reason,
  message: reason === 'HostUnusable' ? message : `package ${prepared.name}: ${message}`,
  ...(code && { code }),
  package: keyOf(prepared),
  ...(failingSinceMs !== undefined && { failingSinceMs }),
})

function continueStage(
  builder: PlanBuilder,
  entry: RunningPackage,
  spec: PackageSpec | undefined,
  permission: Permission,
): AdvanceOutcome {
  const { image, version, work } = entry
  const prepared = requestPreparation(builder, { image, version, digest: work.digest }, 'layers')
  if (prepared.state === 'failed') return blockedBy(entry, prepared)
  if (prepared.state !== 'ready') return { state: 'preparing' }
  return advanceStage(builder, entry, spec, prepared, permission)
}

function retryWhenDue(
  builder: PlanBuilder,
  entry: RetryingPackage,
  spec: PackageSpec | undefined,
  permission: Permission,
): AdvanceOutcome {
  const { attempt, retryAtMs } = entry.progress
  const isDue = retryAtMs <= builder.snapshot.nowMs || attemptInputsHash(entry, spec) !== attempt.inputs
  if (!isDue) requeueAt(builder, retryAtMs)
  // given up half way: it needs a slot, not the end of a pause
  if (isDue && !permission.mayStart && builder.record.lifecycle === undefined)
    return { state: 'ready', stage: entry.progress.stage, pendingInterrupt: entry.pendingInterrupt !== undefined }
  if (!isDue || !permission.mayStart) return retryState(entry, entry.progress, builder.snapshot.nowMs)
  if (isLocked(builder, entry.name)) return { state: 'dependency' }
  retryFailedStage(builder, entry, spec)
  return 'again'
}

/** The new generation is prepared first. Only then the running step is stopped and the stage starts over. */
function restartSuperseded(
  builder: PlanBuilder,
  entry: RunningPackage | RetryingPackage,
  spec: PackageSpec,
  permission: Permission,
): AdvanceOutcome {
  const { name, progress, pendingInterrupt } = entry
  const { image, version, containerSHA } = spec
  const successor = { image, version, ...(containerSHA && { digest: containerSHA }) }
  const prepared = requestPreparation(builder, successor, 'layers')
  if (prepared.state === 'failed') return blockedBy({ name, version }, prepared)
  if (prepared.state !== 'ready') return { state: 'preparing' }
  if (openStepOf(progress) && !cancel(builder, entry, permission)) return { state: 'running' }
  const { stage } = progress
  if (!permission.mayStart) return { state: 'ready', stage, pendingInterrupt: pendingInterrupt !== undefined }
  builder.events.push({ type: 'superseded', skyhook: builder.view.metadata.name, package: name, stage })
  setEntry(builder, dropAttempt(entry))
  return 'again'
}

function areDependenciesComplete(builder: PlanBuilder, spec: PackageSpec): boolean {
  return Object.keys(spec.dependsOn ?? {}).every((name) => {
    const needed = ownValue(builder.view.spec.packages, name)
    return needed !== undefined && isComplete(name, needed, entriesOf(builder.record, name))
  })
}

/** Packages of a serial Skyhook wait for each other. */
const isLocked = ({ view, record }: PlanBuilder, name: string): boolean =>
  view.spec.serial === true &&
  (Object.values(record.packages).some((other) => other.name !== name && isRunning(other)) ||
    (record.canceling ?? []).some((step) => step.package !== name))
