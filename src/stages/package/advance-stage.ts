/** The attempt of a stage: what its steps came to, and which is next. */
import type { PackageRecord, PackageWork, StageAttempt, StepAttempt } from '../../schemas/journal.ts'
import { type Mode, type PackageConfig, type Stage, isCheck } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { advanceAttempt, plannedSteps, type AdvanceResult } from './attempt.ts'
import { stageRetryDelayMs } from '../model/backoff.ts'
import { withInterruptAnswer, pendingIfRequired } from '../interrupt/pending.ts'
import { type PlanBuilder, setEntry } from '../model/plan-builder.ts'
import type { AdvanceOutcome, PackageState, Permission, ReadyPreparation } from '../model/package-state.ts'
import { requestStatus, requestIdOf } from '../interrupt/required.ts'
import { completeStage } from './complete-stage.ts'

/** Records how steps ended, names the one to start, and ends the stage when it is time. */
export function advanceStage(
  builder: PlanBuilder,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  prepared: ReadyPreparation,
  permission: Permission,
): AdvanceOutcome {
  const { snapshot, view } = builder
  const attempt = entry.attempt as StageAttempt
  const work = entry.work as PackageWork
  const advance = advanceAttempt(attempt, {
    nowMs: snapshot.nowMs,
    bootId: snapshot.bootId,
    config: prepared.config,
    contentHashes: prepared.contentHashes,
    stage: entry.stage,
    packageName: entry.name,
    alwaysRun: isSwitchEnabled(spec, 'OVERLAY_ALWAYS_RUN_STEP'),
    version: entry.version,
    flags: builder.record.flags,
    attempts: snapshot.attempts,
    idSeed: [view.metadata.uid, entry.name, entry.version, work.generation, entry.stage, attempt.startedAtMs].join(
      '\n',
    ),
    mayStart: permission.mayStart,
  })
  note(builder, entry, advance, prepared)
  const { progress } = advance
  switch (progress.state) {
    case 'in-progress': {
      setEntry(builder, { ...entry, attempt: progress.attempt })
      startStep(builder, { ...entry, attempt: progress.attempt }, spec, prepared, progress.start)
      const running = progress.attempt.steps.at(-1)
      const observed = running && snapshot.attempts.get(running.id)
      if (progress.start && observed?.state === 'absent' && observed.startBlocker !== undefined)
        return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message: observed.startBlocker }
      return running && !running.result
        ? { state: 'running' }
        : { state: 'ready', stage: entry.stage, pendingInterrupt: entry.pendingInterrupt !== undefined }
    }
    case 'complete': {
      const passedEntry = { ...entry, attempt: progress.attempt }
      const remaining = entry.stage === 'uninstall' ? cleanUp(builder, passedEntry, prepared.config) : undefined
      if (remaining) return remaining
      const conditionalInterrupt = entry.stage === 'config' && spec ? pendingIfRequired(entry, spec) : undefined
      const requestedStatus = conditionalInterrupt && requestStatus(builder, passedEntry)
      if (requestedStatus === 'requested') {
        setEntry(builder, passedEntry)
        return { state: 'running' }
      }
      if (entry.stage !== 'uninstall') recordChecks(builder, entry, progress.attempt)
      if (requestedStatus?.state === 'unusable')
        failStage(
          builder,
          passedEntry,
          'CheckFailed',
          `config passed, but it is unknown whether the interrupt is required: ${requestedStatus.why}`,
        )
      else {
        if (requestedStatus?.status.requests.interrupt === true)
          builder.events.push({
            type: 'interruptRequired',
            skyhook: view.metadata.name,
            package: entry.name,
            message: requestedStatus.status.message,
          })
        completeStage(
          builder,
          requestedStatus ? withInterruptAnswer(entry, conditionalInterrupt, requestedStatus) : entry,
          prepared.config,
        )
      }
      return 'again'
    }
    case 'failed':
      recordChecks(builder, entry, progress.attempt)
      failStage(builder, { ...entry, attempt: progress.attempt }, progress.reason, progress.message)
      return 'again'
  }
}

function failStage(
  builder: PlanBuilder,
  entry: PackageRecord,
  reason: 'StepFailed' | 'CheckFailed',
  message: string,
): void {
  const { snapshot, view } = builder
  const failures = entry.restarts + 1
  const retryAtMs =
    snapshot.nowMs + stageRetryDelayMs(failures, `${snapshot.node.metadata.uid}/${entry.name}/${failures}`)
  setEntry(builder, { ...entry, state: 'erroring', restarts: failures, retryAtMs, failure: { reason, message } })
  builder.events.push({
    type: 'stageFailed',
    skyhook: view.metadata.name,
    package: entry.name,
    stage: entry.stage,
    reason,
    message,
    failures,
  })
}

/** One of the operator's switches in the package's env: `true` in any letter case, given as a plain value. */
const isSwitchEnabled = (spec: PackageSpec | undefined, name: string): boolean =>
  spec?.env?.findLast((variable) => variable.name === name)?.value?.toLowerCase() === 'true'

function note(
  builder: PlanBuilder,
  entry: PackageRecord,
  { setFlags, ended, notes }: AdvanceResult,
  { config }: ReadyPreparation,
): void {
  if (setFlags.length > 0) {
    const flags = Object.fromEntries(setFlags.map((flag) => [flag, builder.snapshot.nowMs]))
    builder.record = { ...builder.record, flags: { ...builder.record.flags, ...flags } }
  }
  for (const step of ended) {
    const planned = config.modes[step.mode as Mode]?.[step.index]
    builder.actions.push({
      do: 'recordStep',
      key: `record/${step.id}`,
      skyhook: builder.view.metadata.name,
      name: entry.name,
      version: entry.version,
      step,
      config,
      ...(planned && { planned }),
    })
  }
  for (const noted of notes) {
    if (noted.note !== 'step-unknown') continue
    builder.events.push({
      type: 'stepUnknown',
      skyhook: builder.view.metadata.name,
      package: entry.name,
      step: `${noted.step.mode} ${noted.step.path}`,
      detail: noted.detail,
    })
  }
}

/**
 * Once an uninstall is complete the journal knows nothing of its package any more, and nobody could do later what is
 * left to do. Undefined when nothing is.
 * /
 */
function cleanUp(builder: PlanBuilder, entry: PackageRecord, config: PackageConfig): PackageState | undefined {
  const requestId = requestIdOf(builder, entry)
  const cleanUpResult = builder.snapshot.cleanUps.get(requestId)
  if (cleanUpResult?.state === 'done') return undefined
  setEntry(builder, entry)
  const skyhook = builder.view.metadata.name
  const key = `cleanUp/${skyhook}/${entry.name}`
  const passedAtMs =
    entry.attempt?.steps.at(-1)?.result?.endedAtMs ?? entry.attempt?.startedAtMs ?? builder.snapshot.nowMs
  builder.actions.push({
    do: 'cleanUp',
    key,
    skyhook,
    name: entry.name,
    config,
    checks: checksOf(entry.attempt),
    passedAtMs,
    requestId,
  })
  if (!cleanUpResult) return { state: 'running' }
  const message = `package ${entry.name} is uninstalled, but its files cannot be removed from the host: ${cleanUpResult.message}`
  return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message }
}

const checksOf = (attempt: StageAttempt | undefined): StepAttempt[] =>
  attempt?.steps.filter(({ mode }) => isCheck(mode as Mode)) ?? []

/** The summary of the checks, when there were any. */
function recordChecks(builder: PlanBuilder, entry: PackageRecord, attempt: StageAttempt): void {
  const checks = checksOf(attempt)
  const mode = checks[0]?.mode as Mode | undefined
  if (mode === undefined) return
  const skyhook = builder.view.metadata.name
  builder.actions.push({
    do: 'recordChecks',
    key: `checks/${skyhook}/${entry.name}/${mode}`,
    skyhook,
    mode,
    steps: checks,
  })
}

function startStep(
  builder: PlanBuilder,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  prepared: ReadyPreparation,
  step: StageAttempt['steps'][number] | undefined,
): void {
  const planned = step && plannedSteps(prepared.config, entry.stage)[(entry.attempt?.steps.length ?? 1) - 1]
  if (!step || !planned) return
  builder.actions.push({
    do: 'startStep',
    key: `step/${step.id}`,
    view: builder.view,
    record: entry,
    spec: stepSpec(entry, spec),
    stage: entry.stage as Stage, // interrupts have no steps
    attempt: step,
    step: planned.step,
    config: prepared.config,
    needsCopyDir: entry.attempt?.steps.every((other) => other === step || other.bootId !== step.bootId) ?? true,
    stageStartedAtMs: entry.attempt?.startedAtMs ?? builder.snapshot.nowMs,
    previousVersion: builder.record.installedVersions[entry.name] ?? 'unknown',
  })
}

/**
 * What a step sees of the package's spec: an uninstall runs with the configuration and env that the package was
 * installed with.
 */
function stepSpec(entry: PackageRecord, spec: PackageSpec | undefined): PackageSpec {
  const own: PackageSpec = spec ?? { version: entry.version, image: entry.image }
  const inputs =
    entry.stage === 'uninstall'
      ? (entry.finishedInputs ?? entry.startedInputs)
      : entry.stage === 'apply' || entry.stage === 'upgrade'
        ? undefined
        : entry.startedInputs
  if (!inputs) return own
  return { ...own, version: entry.version, configMap: inputs.config, env: inputs.env }
}
