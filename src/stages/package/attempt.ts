import { type Mode, type PackageConfig, type Stage, type Step, checkOf, isCheck } from '../../schemas/package-config.ts'
import type { ReasonCode } from '../../schemas/catalogue/reason-codes.ts'
import type { StageAttempt, StepAttempt, StepResult } from '../../schemas/package-record.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import type { StepEnd } from '../../schemas/step-end.ts'
import { reasonMessage } from '../model/plan-builder.ts'
import type { AttemptObservation } from '../model/snapshot.ts'

/**
 * One attempt of one stage: its steps one after another, then its checks. An action that fails ends the attempt; checks
 * run to the end and fail it together. A step with an unknown outcome (its host died before the result was durable) is
 * repeated, and the agent reports that.
 */
export type AttemptContext = {
  readonly nowMs: number
  readonly bootId: string
  readonly config: PackageConfig
  readonly contentHashes: ReadonlyMap<string, string>
  readonly stage: Stage
  /** The Skyhook's env disables the guard (OVERLAY_ALWAYS_RUN_STEP). */
  readonly alwaysRun: boolean
  /** Name of the package in the Skyhook; flags of two packages made from one image must not mix. */
  readonly packageName: string
  /** Of the entry: another version runs its guarded steps again. */
  readonly version: string
  readonly flags: Readonly<Record<string, number>>
  readonly attempts: ReadonlyMap<string, AttemptObservation>
  /** Makes the ids of this package's steps unique, together with stage, step and attempt. */
  readonly idSeed: string
  /** False while paused: a running step ends and is recorded, and no new step starts. */
  readonly mayStart: boolean
}

export type AttemptProgress =
  /**
   * `start` names the step to start (or to find again) on the host; absent while it runs or while nothing may start.
   */
  | { readonly state: 'in-progress'; readonly attempt: StageAttempt; readonly start?: StepAttempt }
  | { readonly state: 'complete'; readonly attempt: StageAttempt }
  | {
      readonly state: 'failed'
      readonly attempt: StageAttempt
      readonly reason: 'StepFailed' | 'CheckFailed'
      readonly message: string
      readonly code?: ReasonCode
    }

export type AdvanceResult = {
  readonly progress: AttemptProgress
  /** Flags of agent-guarded steps that succeeded. */
  readonly setFlags: readonly string[]
  /** Steps whose end is recorded: their traces on the host can go. */
  readonly ended: readonly StepAttempt[]
  /** Steps that are repeated because their outcome is unknown. */
  readonly unknownSteps: readonly { readonly step: StepAttempt; readonly detail: string }[]
}

type PlannedStep = { readonly mode: Mode; readonly index: number; readonly step: Step }

/** Steps of a stage in the order in which they run: the stage's own, then its checks. */
export function plannedSteps(config: PackageConfig, stage: Stage): PlannedStep[] {
  const modes: readonly Mode[] = [stage, checkOf(stage)]
  return modes.flatMap((mode) => (config.modes[mode] ?? []).map((step, index) => ({ mode, index, step })))
}

/**
 * A step of the attempt has run in this boot: the copy dir was restored before it, and the step may have written there.
 */
export const hasRunIn = ({ steps }: StageAttempt, bootId: string): boolean =>
  steps.some(({ result, bootId: bootOfStep }) => {
    const hasRun = result?.result === 'ok' || (result?.result === 'failed' && !result.unstarted)
    return hasRun && bootOfStep === bootId
  })

export function advanceAttempt(before: StageAttempt, context: AttemptContext): AdvanceResult {
  const planned = plannedSteps(context.config, context.stage)
  const setFlags: string[] = []
  const ended: StepAttempt[] = []
  const unknownSteps: { step: StepAttempt; detail: string }[] = []
  let attempt = before
  const result = (progress: AttemptProgress): AdvanceResult => ({ progress, setFlags, ended, unknownSteps })

  for (;;) {
    const last = attempt.steps.at(-1)
    if (last && !last.result) {
      const observed = context.attempts.get(last.id) ?? { state: 'absent' }
      const verdict = evaluateStep(last, observed, planned[attempt.steps.length - 1], context)
      if (verdict === 'running') return result({ state: 'in-progress', attempt })
      if (verdict === 'start')
        return result({ state: 'in-progress', attempt, ...(context.mayStart && { start: last }) })
      if ('unknown' in verdict) {
        unknownSteps.push({ step: last, detail: verdict.unknown })
        ended.push(last)
        attempt = { ...attempt, steps: attempt.steps.slice(0, -1), repeats: (attempt.repeats ?? 0) + 1 }
        continue
      }
      const recorded = { ...last, result: verdict }
      ended.push(recorded)
      attempt = { ...attempt, steps: [...attempt.steps.slice(0, -1), recorded] }
      if (verdict.result === 'ok' && isGuarded(last, context)) setFlags.push(flagOf(last, context))
      if (verdict.result === 'failed') {
        if (!isCheck(last.mode)) return result({ state: 'failed', attempt, reason: 'StepFailed', ...whyOf([verdict]) })
        attempt = { ...attempt, failed: true }
      }
    }

    const next = planned[attempt.steps.length]
    if (!next) {
      if (!attempt.failed) return result({ state: 'complete', attempt })
      const failures = attempt.steps.flatMap(({ result }) => (result?.result === 'failed' ? [result] : []))
      return result({ state: 'failed', attempt, reason: 'CheckFailed', ...whyOf(failures) })
    }
    if (!context.mayStart) return result({ state: 'in-progress', attempt })
    const step = planStep(next, attempt, context)
    attempt = { ...attempt, steps: [...attempt.steps, step] }
    if (!step.result) return result({ state: 'in-progress', attempt, start: step })
  }
}

/** Of steps that failed. */
function whyOf(failures: readonly FailedStep[]): { readonly message: string; readonly code?: ReasonCode } {
  const code = failures.find((one) => one.code !== undefined)?.code
  return { message: reasonMessage(failures.map(({ message }) => message).join('; ')), ...(code && { code }) }
}

function planStep({ mode, index, step }: PlannedStep, attempt: StageAttempt, context: AttemptContext): StepAttempt {
  const { idSeed, bootId } = context
  // times belong to one boot: without its id, another boot could produce the id of a step whose result is still on disk
  const id = sha256Hex([idSeed, bootId, mode, index, attempt.number, attempt.repeats ?? 0].join('\n')).slice(0, 16)
  const stepAttempt = {
    id,
    unit: unitName(context.packageName, mode, step.path, id),
    mode,
    index,
    path: step.path,
    returncodes: step.returncodes,
    bootId,
    startedAtMs: context.nowMs,
  }
  const isDone =
    !context.alwaysRun && isGuarded(stepAttempt, context) && context.flags[flagOf(stepAttempt, context)] !== undefined
  return isDone ? { ...stepAttempt, result: { result: 'skipped', endedAtMs: context.nowMs } } : stepAttempt
}

/** The agent itself ensures that the step is not repeated, in the modes in which the operator honors its flags. */
const isGuarded = ({ mode, index }: Pick<StepAttempt, 'mode' | 'index'>, { config }: AttemptContext): boolean =>
  (mode === 'apply' || mode === 'post-interrupt') && config.modes[mode]?.[index]?.idempotence === 'agent'

type FailedStep = Extract<StepResult, { result: 'failed' }>

type Verdict = 'running' | 'start' | StepResult | { readonly unknown: string }

function evaluateStep(
  step: StepAttempt,
  observed: AttemptObservation,
  planned: PlannedStep | undefined,
  context: AttemptContext,
): Verdict {
  const isSameBoot = step.bootId === context.bootId
  switch (observed.state) {
    case 'running':
      return 'running'
    case 'absent':
      return isSameBoot ? 'start' : { unknown: 'the host went down before the result was durable' }
    case 'ended': {
      const { end } = observed
      if (end.outcome === 'unknown') return { unknown: reasonMessage(end.detail) }
      if (end.outcome === 'killed' && !isSameBoot)
        return { unknown: `the host shut down and stopped it with ${end.signal}` }
      const message =
        planned === undefined ? 'the package no longer has this step' : failureMessage(end, planned, observed.logTail)
      if (message === undefined) return { result: 'ok', endedAtMs: context.nowMs }
      const failed = { result: 'failed', endedAtMs: context.nowMs, message: reasonMessage(message) } as const
      if (end.outcome === 'timeout') return { ...failed, code: 'stage-timeout' }
      return end.outcome === 'failed-to-start' ? { ...failed, unstarted: true } : failed
    }
  }
}

/** Why a step's end counts as a failure, or undefined. The real exit code is compared with `returncodes`. */
function failureMessage(
  end: Exclude<StepEnd, { outcome: 'unknown' }>,
  { mode, step }: PlannedStep,
  logTail: string | undefined,
): string | undefined {
  const logSuffix = logTail === undefined || logTail.trim() === '' ? '' : `: ${logTail.trim()}`
  switch (end.outcome) {
    case 'exited':
      if (step.returncodes.includes(end.code)) return undefined
      return `${mode} ${step.path} exited ${end.code}, expected ${step.returncodes.join(' or ')}${logSuffix}`
    case 'killed':
      return `${mode} ${step.path} was killed by ${end.signal}${logSuffix}`
    case 'timeout':
      return `${mode} ${step.path} ran longer than the package's stageTimeout${logSuffix}`
    case 'failed-to-start':
      return `${mode} ${step.path} could not start: ${end.detail}`
  }
}

/** Identity of an agent-guarded step: package, mode, step and its content, so that a changed script runs again. */
function flagOf(
  { mode, index, path }: Pick<StepAttempt, 'mode' | 'index' | 'path'>,
  { config, contentHashes, packageName, version }: AttemptContext,
): string {
  const step = config.modes[mode]?.[index]
  const identity = [version, path, step?.arguments ?? [], step?.returncodes ?? [], contentHashes.get(path) ?? '']
  return `${packageName}/${mode}/${sha256Hex(JSON.stringify(identity)).slice(0, 16)}`
}

const maxUnitNameLength = 250 // systemd allows 255 bytes; a little room for suffixes

/** `skyhookd-<package>-<mode>-<step>-<id>.service`, cut to systemd's limit; the id keeps it unique. */
export function unitName(packageName: string, mode: string, path: string, id: string): string {
  const readable = `skyhookd-${packageName}-${mode}-${path}`.replaceAll(/[^A-Za-z0-9_.-]/g, '-')
  return `${readable.slice(0, maxUnitNameLength - id.length - '-.service'.length)}-${id}.service`
}
