import type { HostRoot } from '../../../host/fs/host-root.ts'
import { agentFolder } from '../../../host/fs/journal-file.ts'
import { type Clock, toWallMs } from '../../../schemas/clock.ts'
import type { Journal } from '../../../schemas/journal.ts'
import { attemptOf, type StepAttempt } from '../../../schemas/package-record.ts'
import { isObject, parseJson } from '../../../schemas/json.ts'
import { parseStepLine, type StepEndFields, type StepOfLine, stepEndedMessage } from '../../../schemas/step-log.ts'
import type { AttemptObservation } from '../../../stages/model/snapshot.ts'
import { errorField, type Log } from '../../telemetry/log.ts'

const file = `${agentFolder}/ended-steps.json`
/**
 * Enough for two rollouts of some packages with retries. Takes 30 KiB, and a second to log at the start of an agent.
 */
const maxEntries = 100

export type EndedStep = StepOfLine & StepEndFields

/**
 * How the last steps of this host ended. The log of an agent ends with its pod, so each agent repeats earlier ends in
 * its own log. Only people read them: no decision depends on them, and a power cut may lose them.
 */
export type EndedSteps = {
  /** Logs an end and stores it. If the disk fails, only the later repetition is lost. */
  add(step: EndedStep): Promise<void>
  /** Logs once what earlier agents stored. Never rejects. */
  repeat(): Promise<void>
}

export function createEndedSteps({ root, log }: { readonly root: HostRoot; readonly log: Log }): EndedSteps {
  let kept: readonly EndedStep[] = []
  let loaded: Promise<void> | undefined
  let saved: Promise<void> = Promise.resolve()

  async function read(): Promise<void> {
    try {
      const list = parseJson((await root.readText(file)) ?? '[]')
      if (Array.isArray(list)) kept = list.filter(isEndedStep).slice(-maxEntries)
    } catch (error) {
      log.warn(errorField(error), 'the ends of earlier steps are unreadable')
    }
  }

  async function save(): Promise<void> {
    try {
      await root.writeFile(file, `${JSON.stringify(kept)}\n`, 0o600)
    } catch (error) {
      log.warn(errorField(error), 'the end of a step could not be kept for later agents')
    }
  }

  return {
    async add(step) {
      log.info(step, stepEndedMessage)
      await (loaded ??= read())
      kept = [...kept.filter(({ stepId }) => stepId !== step.stepId), step].slice(-maxEntries)
      saved = saved.then(save)
      await saved
    },

    async repeat() {
      if (loaded !== undefined) return
      await (loaded = read())
      for (const step of kept) log.info({ ...step, repeated: true }, stepEndedMessage)
    },
  }
}

/** Whether the value has the fields that readers of the log line expect. */
const isEndedStep = (value: unknown): value is EndedStep =>
  isObject(value) && parseStepLine({ ...value, message: stepEndedMessage })?.what === 'ended'

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
