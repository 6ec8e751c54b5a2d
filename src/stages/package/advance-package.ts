import type { PackageRecord, PackageWork, StageAttempt } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { immutableInputsHash, inputsHash, inputsOf, keysOfConfigChange } from '../model/package-inputs.ts'
import { refreshPending, refreshPendingForInstall, interruptState } from '../interrupt/refresh-pending.ts'
import { pendingForStage, pendingForConfigChange } from '../interrupt/pending.ts'
import {
  type PlanBuilder,
  entriesOf,
  requestPreparation,
  removeEntry,
  setEntry,
  requeueAt,
} from '../model/plan-builder.ts'
import { cancel, isCanceling, openStepOf } from './cancel.ts'
import type { AdvanceOutcome, PackageState, Permission, ReadyPreparation } from '../model/package-state.ts'
import type { References } from '../model/plan.ts'
import { satisfyByBoot } from '../interrupt/required.ts'
import { advanceStage } from './advance-stage.ts'
import { dueOf, isComplete, isMidChange } from './next-stage.ts'
import { isRunRequested, recordRunRequest } from './run-requests.ts'
import type { Preparation } from '../model/snapshot.ts'
import { packageKey } from '../model/package-key.ts'

/**
 * Moves one package as far as it goes now: results are recorded, stages end and begin, steps are named for starting.
 */
export function advancePackage(builder: PlanBuilder, name: string, permission: Permission): PackageState {
  const isDeleted = builder.view.metadata.deletionTimestamp !== undefined
  const spec = specOf(builder, name)
  if (isCanceling(builder.record, name)) return { state: 'running' }
  for (;;) {
    const due = dueOf(name, spec, entriesOf(builder.record, name), isDeleted)
    if (due.due === 'nothing') {
      const supersededEntry = entryWithOpenStep(builder, name)
      if (supersededEntry && !(permission.mayStart && cancel(builder, supersededEntry))) return { state: 'running' }
      recordCompletion(builder, name, spec)
      const currentEntry = spec && builder.record.packages[packageKey(name, spec.version)]
      if (!currentEntry || !isRunRequested(builder, spec, currentEntry)) return { state: 'complete' }
      const state = begin(builder, name, packageKey(name, spec.version), 'config', permission)
      if (state !== 'again') return state
      recordRunRequest(builder, packageKey(name, spec.version))
      continue
    }
    if (due.due === 'forget') {
      removeEntry(builder, due.key)
      continue
    }
    const entry = builder.record.packages[due.key]
    const stage = due.due === 'begin' ? due.stage : entry?.stage
    if (stage === undefined) return { state: 'complete' } // cannot be: `continue` names an existing entry
    if (entry && refreshPendingForInstall(builder, entry, spec)) continue
    if (stage === 'interrupt') {
      if (refreshPending(builder, due.key, spec) || satisfyByBoot(builder, due.key)) continue
      return interruptState(builder, due.key)
    }
    const state =
      due.due === 'begin' || entry?.attempt === undefined
        ? begin(builder, name, due.key, stage, permission)
        : continueStage(builder, entry, permission)
    if (state !== 'again') return state
  }
}

/** What the Skyhook says about a package; nothing any more once it is being deleted. */
const specOf = (builder: PlanBuilder, name: string): PackageSpec | undefined =>
  builder.view.metadata.deletionTimestamp === undefined ? builder.view.spec.packages?.[name] : undefined

/** The entry of this name that has a step on the host, or may have one any moment. */
const entryWithOpenStep = (builder: PlanBuilder, name: string): PackageRecord | undefined =>
  entriesOf(builder.record, name).find(({ attempt }) => openStepOf(attempt))

/** A package just became, or is, complete: what was started is now what is finished. */
function recordCompletion(builder: PlanBuilder, name: string, spec: PackageSpec | undefined): void {
  if (!spec) {
    for (const entry of entriesOf(builder.record, name))
      if (isMidChange(entry)) setEntry(builder, { ...entry, retained: true })
    return
  }
  const entry = builder.record.packages[packageKey(name, spec.version)]
  if (!entry) return
  const { changedKeys: _, attempt: __, ...rest } = entry
  const finishedInputs = entry.startedInputs ?? entry.finishedInputs
  if (entry.attempt !== undefined || entry.changedKeys !== undefined || finishedInputs !== entry.finishedInputs)
    setEntry(builder, { ...rest, ...(finishedInputs && { finishedInputs }) })
}

function begin(
  builder: PlanBuilder,
  name: string,
  key: string,
  stage: StageName,
  permission: Permission,
): AdvanceOutcome {
  const entry = builder.record.packages[key]
  const spec = specOf(builder, name)
  const isNewWork = stage === 'apply' || stage === 'upgrade' || entry?.work === undefined || isSuperseded(entry, spec)
  const image =
    isNewWork && spec
      ? { image: spec.image, version: spec.version, ...(spec.containerSHA && { digest: spec.containerSHA }) }
      : { image: entry?.image ?? '', version: entry?.version ?? '', ...(entry?.work && { digest: entry.work.digest }) }
  const isNewChange = entry === undefined || !isMidChange(entry) // what is half done is not held back any more
  const references = isNewChange && stage !== 'uninstall' ? referencesOf(spec) : undefined
  const prepared = requestPreparation(builder, { ...image, ...(references && { references }) }) // also of what waits for others: a wrong image is to be known before anything begins
  const waitState = waitStateOf(name, prepared)
  if (waitState?.state === 'blocked') return waitState
  const supersededEntry = entryWithOpenStep(builder, name) // of another version or stage; stopped only now that its successor is prepared
  if (supersededEntry && !(waitState === undefined && permission.mayStart && cancel(builder, supersededEntry)))
    return { state: 'running' }
  if (stage !== 'uninstall' && spec) {
    if (!areDependenciesComplete(builder, spec)) return { state: 'dependency' }
  }
  if (builder.view.spec.serial === true && isAnotherUnderWay(builder, name)) return { state: 'dependency' }
  if (waitState) return waitState
  const pendingInterrupt = pendingForStage(entry, spec, stage) !== undefined
  if (isNewChange && pendingInterrupt && !permission.isDrained)
    return permission.mayStart ? { state: 'drain' } : { state: 'ready', stage, pendingInterrupt }
  if (!permission.mayStart) return { state: 'ready', stage, pendingInterrupt }
  if (stage === 'apply') retainOthers(builder, name, key)
  setEntry(
    builder,
    beginStage(builder, { name, entry, spec, stage, prepared: prepared as ReadyPreparation, isNewWork }),
  )
  return 'again'
}

const referencesOf = ({ env = [], resources }: Pick<PackageSpec, 'env' | 'resources'> = {}): References | undefined =>
  env.some(({ valueFrom }) => valueFrom) ? { env, ...(resources && { resources }) } : undefined

/**
 * Applied over another version that its policy does not uninstall: that one stays where it is, and is not what the host
 * runs.
 */
function retainOthers(builder: PlanBuilder, name: string, key: string): void {
  for (const other of entriesOf(builder.record, name))
    if (packageKey(name, other.version) !== key && other.work !== undefined)
      setEntry(builder, { ...other, retained: true })
}

function waitStateOf(name: string, prepared: Preparation): PackageState | undefined {
  if (prepared.state === 'pending') return { state: 'preparing' }
  if (prepared.state === 'ready') return undefined
  const { reason, message } = prepared
  return {
    state: 'blocked',
    atPreparation: true,
    reason,
    message: reason === 'HostUnusable' ? message : `package ${name}: ${message}`,
  }
}

type StageStart = {
  readonly name: string
  readonly entry: PackageRecord | undefined
  readonly spec: PackageSpec | undefined
  readonly stage: StageName
  readonly prepared: ReadyPreparation
  readonly isNewWork: boolean
}

function beginStage(
  builder: PlanBuilder,
  { name, entry, spec, stage, prepared, isNewWork }: StageStart,
): PackageRecord {
  const generation = builder.view.metadata.generation ?? 0
  const isConfigChange = stage === 'config' && entry?.finishedInputs !== undefined && entry.state === 'complete'
  const base: PackageRecord = entry ?? {
    name,
    version: spec?.version ?? '',
    image: spec?.image ?? '',
    stage,
    state: 'in_progress',
    restarts: 0,
  }
  const { attempt: _, retryAtMs: __, failure: ___, retained: ____, pendingInterrupt, ...others } = base
  const { finishedInputs: _____, changedKeys: ______, interruptRequirement: _______, ...restartedFields } = others
  const carriedFields = stage === 'apply' || stage === 'upgrade' ? restartedFields : others
  const newWork: PackageWork = {
    digest: prepared.digest,
    generation: isNewWork || isConfigChange || entry?.work === undefined ? generation : entry.work.generation,
    inputs: spec ? immutableInputsHash(spec) : (entry?.work?.inputs ?? ''),
    packageName: prepared.config.packageName,
    packageVersion: prepared.config.packageVersion,
  }
  const work = stage === 'uninstall' && entry?.work ? entry.work : newWork
  const pending = pendingForStage(entry, spec, stage) ?? (stage === 'post-interrupt' ? undefined : pendingInterrupt)
  return {
    ...carriedFields,
    ...(spec &&
      stage !== 'uninstall' && { image: spec.image, ...(spec.containerSHA && { containerSHA: spec.containerSHA }) }),
    ...(spec?.uninstall && { uninstall: spec.uninstall }),
    stage,
    state: 'in_progress',
    restarts: 0,
    work,
    ...(pending && { pendingInterrupt: pending }),
    ...(stage === 'config' && spec && configStartFields(base, spec)),
    attempt: newAttempt(builder, 1, attemptInputsHash(base, spec)),
  }
}

/** What an entry remembers of a `config` that starts with this spec, first try or not. */
function configStartFields(entry: PackageRecord, spec: PackageSpec): Partial<PackageRecord> {
  const pendingInterrupt = entry.finishedInputs ? pendingForConfigChange(entry, spec) : entry.pendingInterrupt
  return {
    startedInputs: inputsOf(spec),
    ...((entry.finishedInputs ?? entry.startedInputs) && { changedKeys: keysOfConfigChange(entry, spec) }),
    ...(spec.configInterrupts && { configInterrupts: spec.configInterrupts }),
    ...(pendingInterrupt && { pendingInterrupt }),
  }
}

const attemptInputsHash = (entry: PackageRecord, spec: PackageSpec | undefined): string =>
  inputsHash(spec ? inputsOf(spec) : (entry.finishedInputs ?? entry.startedInputs ?? { config: {}, env: [] }))

const newAttempt = (builder: PlanBuilder, number: number, inputs: string): StageAttempt => ({
  number,
  startedAtMs: builder.snapshot.nowMs,
  steps: [],
  inputs,
})

/** The spec changed what a begun package is made from. */
const isSuperseded = (entry: PackageRecord, spec: PackageSpec | undefined): boolean =>
  spec !== undefined &&
  entry.stage !== 'uninstall' &&
  entry.work !== undefined &&
  entry.version === spec.version &&
  entry.work.inputs !== immutableInputsHash(spec)

function continueStage(builder: PlanBuilder, entry: PackageRecord, permission: Permission): AdvanceOutcome {
  const spec = specOf(builder, entry.name)
  const { attempt } = entry
  if (attempt === undefined || entry.work === undefined) return { state: 'dependency' }
  if (isSuperseded(entry, spec)) return restartSuperseded(builder, entry, spec, permission)
  if (entry.state === 'erroring') {
    const inputs = attemptInputsHash(entry, spec)
    const due = (entry.retryAtMs ?? 0) <= builder.snapshot.nowMs || inputs !== attempt.inputs
    if (!due) requeueAt(builder, entry.retryAtMs ?? 0)
    const isLocked = builder.view.spec.serial === true && isAnotherUnderWay(builder, entry.name)
    if (!due || !permission.mayStart) return failedState(entry)
    if (isLocked) return { state: 'dependency' }
    const { retryAtMs: _, failure: __, ...retained } = entry
    const configStart = entry.stage === 'config' && spec ? configStartFields(entry, spec) : {}
    setEntry(builder, {
      ...retained,
      ...configStart,
      state: 'in_progress',
      attempt: newAttempt(builder, attempt.number + 1, inputs),
    })
    return 'again'
  }
  const prepared = requestPreparation(builder, {
    image: entry.image,
    version: entry.version,
    digest: entry.work.digest,
  })
  const waitState = waitStateOf(entry.name, prepared)
  if (waitState) return waitState
  return advanceStage(builder, entry, spec, prepared as ReadyPreparation, permission)
}

const failedState = (entry: PackageRecord): PackageState => ({
  state: 'blocked',
  atPreparation: false,
  reason: entry.failure?.reason === 'CheckFailed' ? 'CheckFailed' : 'StepFailed',
  message: `package ${entry.name} ${entry.version}: ${entry.failure?.message ?? 'failed'}`,
})

/** The new generation is prepared first; only then the running step is stopped and the stage starts over from it. */
function restartSuperseded(
  builder: PlanBuilder,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  permission: Permission,
): AdvanceOutcome {
  const attempt = entry.attempt
  if (!spec || !attempt) return { state: 'dependency' }
  const prepared = requestPreparation(builder, {
    image: spec.image,
    version: spec.version,
    ...(spec.containerSHA && { digest: spec.containerSHA }),
  })
  const waitState = waitStateOf(entry.name, prepared)
  if (waitState) return waitState
  const running = openStepOf(attempt)
  if (running && !(permission.mayStart && cancel(builder, entry))) return { state: 'running' }
  if (!permission.mayStart)
    return { state: 'ready', stage: entry.stage, pendingInterrupt: entry.pendingInterrupt !== undefined }
  builder.events.push({
    type: 'superseded',
    skyhook: builder.view.metadata.name,
    package: entry.name,
    stage: entry.stage,
  })
  const { attempt: _, ...rest } = entry
  setEntry(builder, rest)
  return 'again'
}

function areDependenciesComplete(builder: PlanBuilder, spec: PackageSpec): boolean {
  return Object.keys(spec.dependsOn ?? {}).every((name) => {
    const needed = builder.view.spec.packages?.[name]
    return needed !== undefined && isComplete(name, needed, entriesOf(builder.record, name))
  })
}

const isAnotherUnderWay = (builder: PlanBuilder, name: string): boolean =>
  Object.values(builder.record.packages).some(
    (other) => other.name !== name && other.state === 'in_progress' && other.attempt !== undefined,
  ) || (builder.record.canceling ?? []).some((step) => step.package !== name)
