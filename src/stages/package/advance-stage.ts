/** A running stage: the results of its steps, and the next step. */
import {
  openStepOf,
  type RunningPackage,
  type StageAttempt,
  type StageFailure,
  type StepAttempt,
} from '../../schemas/package-record.ts'
import { ownValue } from '../../schemas/json.ts'
import { isCheck, type PackageConfig } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { pendingAfterAnswer, pendingIfRequired, requestIdOf, requestStatus } from '../interrupt/pending.ts'
import { inputsOfUninstall } from '../model/package-inputs.ts'
import {
  type AdvanceOutcome,
  hasStarted,
  isLeftBehind,
  type PackageState,
  type Permission,
  type ReadyPreparation,
} from '../model/package-state.ts'
import {
  entriesOf,
  failureOf,
  type PlanBuilder,
  reasonMessage,
  removeEntry,
  setEntry,
  withoutFlags,
} from '../model/plan-builder.ts'
import { keyOf } from '../model/snapshot.ts'
import { completeStage, failStage, recordSteps, stageRetryDelayMs, withFacts } from '../model/transitions.ts'
import { type AdvanceResult, advanceAttempt, hasRunIn, plannedSteps } from './attempt.ts'

/** Records how steps ended, names the next step, and ends the stage after the last one. */
export function advanceStage(
  builder: PlanBuilder,
  before: RunningPackage,
  spec: PackageSpec | undefined,
  prepared: ReadyPreparation,
  permission: Permission,
): AdvanceOutcome {
  const { snapshot, view } = builder
  const { name, version, work, progress } = before
  const { stage, attempt } = progress
  const advance = advanceAttempt(attempt, {
    nowMs: snapshot.nowMs,
    bootId: snapshot.bootId,
    config: prepared.config,
    contentHashes: prepared.contentHashes,
    stage,
    packageName: name,
    alwaysRun: isSwitchEnabled(spec, 'OVERLAY_ALWAYS_RUN_STEP'),
    version,
    flags: builder.record.flags,
    attempts: snapshot.attempts,
    idSeed: [view.metadata.uid, name, version, work.generation, stage, attempt.startedAtMs].join('\n'),
    mayStart: permission.mayStart,
  })
  recordEnds(builder, before, advance, prepared)
  const result = advance.progress
  const open = openStepOf(progress)
  const isTouched = open !== undefined && hasStarted(snapshot, open)
  const entry = recordSteps(isTouched ? withFacts(before, { untouched: undefined }) : before, result.attempt)
  switch (result.state) {
    case 'in-progress':
      setEntry(builder, entry)
      return continueSteps(builder, entry, { spec, prepared, step: result.start })
    case 'complete':
      return endStage(builder, entry, spec, prepared.config)
    case 'failed':
      recordChecks(builder, entry)
      recordFailedStage(builder, entry, {
        reason: result.reason,
        message: result.message,
        ...(result.code && { code: result.code }),
      })
      return 'again'
  }
}

/**
 * All steps passed: the stage is complete once nothing is missing, such as the package's answer about its interrupt.
 */
function endStage(
  builder: PlanBuilder,
  entry: RunningPackage,
  spec: PackageSpec | undefined,
  config: PackageConfig,
): AdvanceOutcome {
  const { stage } = entry.progress
  if (stage === 'uninstall') {
    const remaining = cleanUp(builder, entry, config)
    if (!remaining) recordCompletedStage(builder, entry, config)
    return remaining ?? 'again'
  }
  const conditionalInterrupt = stage === 'config' && spec ? pendingIfRequired(entry, spec) : undefined
  if (!conditionalInterrupt) {
    recordChecks(builder, entry)
    recordCompletedStage(builder, entry, config)
    return 'again'
  }
  const answer = requestStatus(builder, entry)
  if (answer === 'requested') {
    setEntry(builder, entry)
    return { state: 'running' }
  }
  recordChecks(builder, entry)
  if (answer.state === 'unusable') {
    const message = reasonMessage(`config passed, but it is unknown whether the interrupt is required: ${answer.why}`)
    recordFailedStage(builder, entry, { reason: 'CheckFailed', message })
    return 'again'
  }
  if (answer.status.requests.interrupt) {
    const skyhook = builder.view.metadata.name
    builder.events.push({ type: 'interruptRequired', skyhook, package: entry.name, message: answer.status.message })
  }
  const pendingInterrupt = pendingAfterAnswer(entry, conditionalInterrupt, answer)
  recordCompletedStage(builder, withFacts(entry, { pendingInterrupt }), config)
  return 'again'
}

function recordFailedStage(builder: PlanBuilder, entry: RunningPackage, failure: StageFailure): void {
  const { snapshot, view } = builder
  const { name, progress } = entry
  const failures = entry.restarts + 1
  const retryDelayMs = stageRetryDelayMs(failures, `${snapshot.node.metadata.uid}/${name}/${failures}`)
  const { nowMs } = snapshot
  setEntry(builder, failStage(entry, { failure, nowMs, retryAtMs: nowMs + retryDelayMs }))
  const skyhook = view.metadata.name
  builder.events.push({ type: 'stageFailed', skyhook, package: name, stage: progress.stage, ...failure, failures })
}

/** One of the operator's switches in the package's env: `true` in any letter case, given as a plain value. */
const isSwitchEnabled = (spec: PackageSpec | undefined, name: string): boolean =>
  spec?.env?.findLast((variable) => variable.name === name)?.value?.toLowerCase() === 'true'

/** The flags, records and Events that follow from steps that ended. */
function recordEnds(
  builder: PlanBuilder,
  { name, version }: RunningPackage,
  { setFlags, ended, unknownSteps }: AdvanceResult,
  { config }: ReadyPreparation,
): void {
  const skyhook = builder.view.metadata.name
  if (setFlags.length > 0) {
    const flags = Object.fromEntries(setFlags.map((flag) => [flag, builder.snapshot.nowMs]))
    builder.record = { ...builder.record, flags: { ...builder.record.flags, ...flags } }
  }
  for (const step of ended) {
    const planned = config.modes[step.mode]?.[step.index]
    const key = `record/${step.id}`
    builder.actions.push({ do: 'recordStep', key, skyhook, name, version, step, config, ...(planned && { planned }) })
  }
  for (const { step, detail } of unknownSteps)
    builder.events.push({ type: 'stepUnknown', skyhook, package: name, step: `${step.mode} ${step.path}`, detail })
}

/**
 * Once an uninstall is complete the journal no longer has its package, so the remaining work must be done before.
 * Undefined when there is none.
 */
function cleanUp(builder: PlanBuilder, entry: RunningPackage, config: PackageConfig): PackageState | undefined {
  const requestId = requestIdOf(builder, entry)
  const result = builder.snapshot.cleanUps.get(requestId)
  if (result?.state === 'done') return undefined
  setEntry(builder, entry)
  const { attempts, nowMs, wallOffsetMs } = builder.snapshot
  const { name, progress } = entry
  const { attempt } = progress
  // until the end of a step is recorded its flag may still be written: after the clean-up it would stay
  if (attempt.steps.some(({ id }) => attempts.has(id))) return { state: 'running' }
  const passedAtWallMs = attempt.passedAtWallMs ?? nowMs + wallOffsetMs
  setEntry(builder, { ...entry, progress: { ...progress, attempt: { ...attempt, passedAtWallMs } } })
  const skyhook = builder.view.metadata.name
  const key = `cleanUp/${skyhook}/${name}`
  const checks = checksOf(attempt)
  builder.actions.push({ do: 'cleanUp', key, skyhook, name, config, checks, passedAtWallMs, requestId })
  if (!result) return { state: 'running' }
  const message = `package ${name} is uninstalled, but its files cannot be removed from the host: ${result.message}`
  return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message, package: keyOf(entry) }
}

const checksOf = ({ steps }: StageAttempt): StepAttempt[] => steps.filter(({ mode }) => isCheck(mode))

/** The summary of the checks, when there were any. */
function recordChecks(builder: PlanBuilder, { name, progress }: RunningPackage): void {
  const steps = checksOf(progress.attempt)
  const mode = steps[0]?.mode
  if (mode === undefined) return
  const skyhook = builder.view.metadata.name
  builder.actions.push({ do: 'recordChecks', key: `checks/${skyhook}/${name}/${mode}`, skyhook, mode, steps })
}

type NextStep = {
  readonly spec: PackageSpec | undefined
  readonly prepared: ReadyPreparation
  /** Undefined while a step runs, or while no step may start. */
  readonly step: StepAttempt | undefined
}

function continueSteps(builder: PlanBuilder, entry: RunningPackage, next: NextStep): PackageState {
  const { stage, attempt } = entry.progress
  startStep(builder, entry, next)
  const last = attempt.steps.at(-1)
  const failure = next.step && failureOf(builder.snapshot, { do: 'startStep', key: startKey(next.step) })
  if (failure) {
    const { reason, message } = failure
    return { state: 'blocked', atPreparation: false, reason, message, package: keyOf(entry) }
  }
  if (last && !last.result) return { state: 'running' }
  return { state: 'ready', stage, pendingInterrupt: entry.pendingInterrupt !== undefined }
}

const startKey = ({ id }: StepAttempt): string => `step/${id}`

function startStep(builder: PlanBuilder, entry: RunningPackage, { spec, prepared, step }: NextStep): void {
  const { stage, attempt } = entry.progress
  const planned = step && plannedSteps(prepared.config, stage)[attempt.steps.length - 1]
  if (!step || !planned) return
  builder.actions.push({
    do: 'startStep',
    key: startKey(step),
    view: builder.view,
    record: entry,
    spec: stepSpec(entry, spec),
    stage,
    attempt: step,
    step: planned.step,
    config: prepared.config,
    needsCopyDir: !hasRunIn(attempt, step.bootId),
    stageStartedAtMs: attempt.startedAtMs,
    previousVersion: ownValue(builder.record.installedVersions, entry.name) ?? 'unknown',
  })
}

/** The inputs of a step from the package's spec: from config on, those of the start of the stage. */
function stepSpec(entry: RunningPackage, spec: PackageSpec | undefined): PackageSpec {
  const { version, image, config, progress } = entry
  const own: PackageSpec = spec ?? { version, image }
  if (progress.stage === 'apply' || progress.stage === 'upgrade') return own
  const inputs = progress.stage === 'uninstall' ? inputsOfUninstall(entry, spec) : config?.started
  return inputs ? { ...own, version, configMap: inputs.config, env: inputs.env } : own
}

/** A stage whose steps and checks passed: the new state of the package and of the host. */
function recordCompletedStage(builder: PlanBuilder, entry: RunningPackage, config: PackageConfig): void {
  const { name, progress } = entry
  const { stage } = progress
  const skyhook = builder.view.metadata.name
  builder.events.push({ type: 'stageCompleted', skyhook, package: name, stage })
  const { nowMs, wallOffsetMs } = builder.snapshot
  setEntry(builder, completeStage(entry, nowMs + wallOffsetMs))
  if (stage === 'uninstall') {
    builder.record = { ...builder.record, flags: withoutFlags(builder.record.flags, name) }
    setInstalledVersion(builder, name, 'uninstalled')
  }
  if (stage === 'apply' || stage === 'upgrade') {
    const version = config.packageVersion
    setInstalledVersion(builder, name, version)
    builder.actions.push({ do: 'recordHistory', key: `history/${skyhook}/${name}`, skyhook, name, config, version })
  }
  if (stage === 'uninstall' || stage === 'upgrade' || stage === 'apply') removeOtherVersions(builder, entry)
}

/** Other versions were uninstalled or upgraded. The new version also replaces the leftovers of an uninstall. */
function removeOtherVersions(builder: PlanBuilder, { name, version, progress }: RunningPackage): void {
  const isApply = progress.stage === 'apply'
  for (const other of entriesOf(builder.record, name)) {
    const isGone = isLeftBehind(other) || !(isApply || other.progress.state === 'retained')
    if (other.version !== version && isGone) removeEntry(builder, keyOf(other))
  }
}

function setInstalledVersion(builder: PlanBuilder, name: string, version: string): void {
  builder.record = { ...builder.record, installedVersions: { ...builder.record.installedVersions, [name]: version } }
}
