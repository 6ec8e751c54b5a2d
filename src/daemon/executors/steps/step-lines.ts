import { type Clock, toWallMs } from '../../../schemas/clock.ts'
import { attemptOf, type Journal, type StepAttempt } from '../../../schemas/journal.ts'
import type { StepEndFields, StepOfLine } from '../../../schemas/step-log.ts'
import type { AttemptObservation } from '../../../stages/model/snapshot.ts'

type WallTime = Pick<Clock, 'wallMs' | 'steadyMs'>

/** The step with this id in the journal, as log lines name it. The version of a canceled step is unknown. */
export function stepOfLine(journal: Journal, id: string): StepOfLine | undefined {
  for (const [skyhook, { packages, canceling = [] }] of Object.entries(journal.skyhooks)) {
    for (const { name, version, progress } of Object.values(packages)) {
      const attempt = attemptOf(progress)
      const step = attempt?.steps.find((one) => one.id === id)
      if (attempt && step) return lineOf({ skyhook, package: name, version, attempt: attempt.number }, step)
    }
    const canceled = canceling.find((one) => one.id === id)
    if (canceled) return lineOf({ skyhook, package: canceled.package }, canceled)
  }
  return undefined
}

export const lineOf = (
  { attempt, ...of }: Pick<StepOfLine, 'skyhook' | 'package' | 'version' | 'attempt'>,
  { id, mode, path }: StepAttempt,
): StepOfLine => ({ ...of, mode, step: path, stepId: id, ...(attempt !== undefined && { attempt }) })

/** The published start time. */
export const startFields = ({ startedAtMs }: StepAttempt, clock: WallTime): { readonly startedAt: string } => ({
  startedAt: new Date(toWallMs(clock, startedAtMs)).toISOString(),
})

/** Fields about the end of a step. If it ended while no agent ran, the time is that of the first observation. */
export function endFields(
  step: StepAttempt,
  observed: AttemptObservation | undefined,
  clock: WallTime,
  isCanceled = false,
): StepEndFields {
  const { result, startedAtMs } = step
  const endedAtMs = result?.endedAtMs ?? clock.steadyMs()
  const end = observed?.state === 'ended' ? observed.end : undefined
  return {
    ...startFields(step, clock),
    endedAt: new Date(toWallMs(clock, endedAtMs)).toISOString(),
    durationMs: Math.max(0, endedAtMs - startedAtMs),
    result: result?.result ?? (isCanceled ? 'canceled' : 'unknown'),
    ...(end?.outcome === 'exited' && { exitCode: end.code }),
    ...(result?.result === 'failed' && { detail: result.message }),
    ...(end?.outcome === 'unknown' && { detail: end.detail }),
  }
}
