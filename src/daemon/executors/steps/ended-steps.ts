import { agentFolder } from '../../../host/fs/journal-file.ts'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import { isObject, parseJson } from '../../../schemas/json.ts'
import { parseStepLine, type StepEndFields, stepEndedMessage, type StepOfLine } from '../../../schemas/step-log.ts'
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
