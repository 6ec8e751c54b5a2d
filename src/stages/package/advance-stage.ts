/** The attempt of a stage: what its steps came to, and which is next. */
import type { PackageRecord, PackageWork, StageAttempt, StepAttempt } from '../../schemas/journal.ts'
import type { Mode, PackageConfig, Stage } from '../../schemas/package-config.ts'
import { isCheck } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { advanceAttempt, plannedSteps } from './attempt.ts'
import type { AdvanceResult } from './attempt.ts'
import { retryWaitMs } from '../model/backoff.ts'
import { answered, debtIfRequired } from '../interrupt/pending.ts'
import type { Draft } from '../model/plan-builder.ts'
import { setEntry } from '../model/plan-builder.ts'
import type { Outcome, PackageState, Permission, Ready } from '../model/package-state.ts'
import { answerOf, questionOf } from '../interrupt/required.ts'
import { completeStage } from './complete-stage.ts'

/** Records how steps ended, names the one to start, and ends the stage when it is time. */
export function progressStage(
  draft: Draft,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  prepared: Ready,
  permission: Permission,
): Outcome {
  const { world, view } = draft
  const attempt = entry.attempt as StageAttempt
  const work = entry.work as PackageWork
  const advanced = advanceAttempt(attempt, {
    nowMs: world.nowMs,
    bootId: world.bootId,
    config: prepared.config,
    contentHashes: prepared.contentHashes,
    stage: entry.stage,
    packageName: entry.name,
    alwaysRun: isSwitchedOn(spec, 'OVERLAY_ALWAYS_RUN_STEP'),
    version: entry.version,
    flags: draft.record.flags,
    attempts: world.attempts,
    idSeed: [view.metadata.uid, entry.name, entry.version, work.generation, entry.stage, attempt.startedAtMs].join('\n'),
    mayStart: permission.mayStart,
  })
  note(draft, entry, advanced, prepared)
  const { progress } = advanced
  switch (progress.state) {
    case 'under-way': {
      setEntry(draft, { ...entry, attempt: progress.attempt })
      startStep(draft, { ...entry, attempt: progress.attempt }, spec, prepared, progress.start)
      const running = progress.attempt.steps.at(-1)
      const observed = running && world.attempts.get(running.id)
      if (progress.start && observed?.state === 'absent' && observed.hindrance !== undefined)
        return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message: observed.hindrance }
      return running && !running.result ? { state: 'running' } : { state: 'ready', stage: entry.stage, owes: entry.owes !== undefined }
    }
    case 'complete': {
      const passed = { ...entry, attempt: progress.attempt }
      const left = entry.stage === 'uninstall' ? cleanUp(draft, passed, prepared.config) : undefined
      if (left) return left
      const owesIfRequired = entry.stage === 'config' && spec ? debtIfRequired(entry, spec) : undefined
      const answer = owesIfRequired && answerOf(draft, passed)
      if (answer === 'asked') {
        setEntry(draft, passed)
        return { state: 'running' }
      }
      if (entry.stage !== 'uninstall') recordChecks(draft, entry, progress.attempt)
      if (answer?.state === 'unusable')
        failStage(draft, passed, 'CheckFailed', `config passed, but whether the interrupt is required cannot be known: ${answer.why}`)
      else {
        if (answer?.status.requests.interrupt === true)
          draft.events.push({ type: 'interruptRequired', skyhook: view.metadata.name, package: entry.name, message: answer.status.message })
        completeStage(draft, answer ? answered(entry, owesIfRequired, answer) : entry, prepared.config)
      }
      return 'again'
    }
    case 'failed':
      recordChecks(draft, entry, progress.attempt)
      failStage(draft, { ...entry, attempt: progress.attempt }, progress.reason, progress.message)
      return 'again'
  }
}

function failStage(draft: Draft, entry: PackageRecord, reason: 'StepFailed' | 'CheckFailed', message: string): void {
  const { world, view } = draft
  const failures = entry.restarts + 1
  const retryAtMs = world.nowMs + retryWaitMs(failures, `${world.node.metadata.uid}/${entry.name}/${failures}`)
  setEntry(draft, { ...entry, state: 'erroring', restarts: failures, retryAtMs, failure: { reason, message } })
  draft.events.push({
    type: 'stageFailed',
    skyhook: view.metadata.name,
    package: entry.name,
    stage: entry.stage,
    reason,
    message,
    failures,
  })
}

/** One of the incumbent's switches in the package's env: `true` in any letter case, given as a plain value. */
const isSwitchedOn = (spec: PackageSpec | undefined, name: string): boolean =>
  spec?.env?.findLast((variable) => variable.name === name)?.value?.toLowerCase() === 'true'

function note(draft: Draft, entry: PackageRecord, { setFlags, ended, notes }: AdvanceResult, { config }: Ready): void {
  if (setFlags.length > 0) {
    const flags = Object.fromEntries(setFlags.map((flag) => [flag, draft.world.nowMs]))
    draft.record = { ...draft.record, flags: { ...draft.record.flags, ...flags } }
  }
  for (const step of ended) {
    const planned = config.modes[step.mode as Mode]?.[step.index]
    draft.actions.push({
      do: 'recordStep',
      key: `record/${step.id}`,
      skyhook: draft.view.metadata.name,
      name: entry.name,
      version: entry.version,
      step,
      config,
      ...(planned && { planned }),
    })
  }
  for (const noted of notes) {
    if (noted.note !== 'step-unknown') continue
    draft.events.push({
      type: 'stepUnknown',
      skyhook: draft.view.metadata.name,
      package: entry.name,
      step: `${noted.step.mode} ${noted.step.path}`,
      detail: noted.detail,
    })
  }
}

/**
 * Once an uninstall is complete the journal knows nothing of its package any more, and nobody could do later what is left to do.
 * Undefined when nothing is.
 */
function cleanUp(draft: Draft, entry: PackageRecord, config: PackageConfig): PackageState | undefined {
  const question = questionOf(draft, entry)
  const cleaned = draft.world.cleanUps.get(question)
  if (cleaned?.state === 'done') return undefined
  setEntry(draft, entry)
  const skyhook = draft.view.metadata.name
  const key = `cleanUp/${skyhook}/${entry.name}`
  const passedAtMs = entry.attempt?.steps.at(-1)?.result?.endedAtMs ?? entry.attempt?.startedAtMs ?? draft.world.nowMs
  draft.actions.push({ do: 'cleanUp', key, skyhook, name: entry.name, config, checks: checksOf(entry.attempt), passedAtMs, question })
  if (!cleaned) return { state: 'running' }
  const message = `package ${entry.name}: it is uninstalled, but its files cannot be taken off the host: ${cleaned.message}`
  return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message }
}

const checksOf = (attempt: StageAttempt | undefined): StepAttempt[] => attempt?.steps.filter(({ mode }) => isCheck(mode as Mode)) ?? []

/** The summary of the checks, when there were any. */
function recordChecks(draft: Draft, entry: PackageRecord, attempt: StageAttempt): void {
  const checks = checksOf(attempt)
  const mode = checks[0]?.mode as Mode | undefined
  if (mode === undefined) return
  const skyhook = draft.view.metadata.name
  draft.actions.push({ do: 'recordChecks', key: `checks/${skyhook}/${entry.name}/${mode}`, skyhook, mode, steps: checks })
}

function startStep(
  draft: Draft,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  prepared: Ready,
  step: StageAttempt['steps'][number] | undefined,
): void {
  const planned = step && plannedSteps(prepared.config, entry.stage)[(entry.attempt?.steps.length ?? 1) - 1]
  if (!step || !planned) return
  draft.actions.push({
    do: 'startStep',
    key: `step/${step.id}`,
    view: draft.view,
    record: entry,
    spec: stepSpec(entry, spec),
    stage: entry.stage as Stage, // interrupts have no steps
    attempt: step,
    step: planned.step,
    config: prepared.config,
    fresh: entry.attempt?.steps.every((other) => other === step || other.bootId !== step.bootId) ?? true,
    stageStartedAtMs: entry.attempt?.startedAtMs ?? draft.world.nowMs,
    previousVersion: draft.record.installed[entry.name] ?? 'unknown',
  })
}

/** What a step sees of the package's spec: an uninstall runs with the configuration and env that the package was installed with. */
function stepSpec(entry: PackageRecord, spec: PackageSpec | undefined): PackageSpec {
  const own: PackageSpec = spec ?? { version: entry.version, image: entry.image }
  const inputs =
    entry.stage === 'uninstall'
      ? (entry.finished ?? entry.started)
      : entry.stage === 'apply' || entry.stage === 'upgrade'
        ? undefined
        : entry.started
  if (!inputs) return own
  return { ...own, version: entry.version, configMap: inputs.config, env: inputs.env }
}
