/**
 * Lines of the agent's log about steps of packages: what a step wrote, when it started and how it ended. The agent
 * writes them. `kubectl skyhook logs` and `history` find them by these fields, whose names and meanings do not change.
 * Times are RFC 3339.
 */
import { isObject } from './json.ts'

/** The step that a line is about. */
export type StepOfLine = {
  readonly skyhook: string
  readonly package: string
  /** Absent where a step was canceled before this agent started. */
  readonly version?: string | undefined
  /** Mode in the package's config.json, for example `apply-check`. */
  readonly mode: string
  /** Path of the step's script in the package. */
  readonly step: string
  /** Unique to this attempt of the step. */
  readonly stepId: string
  /** Of the stage, from 1; absent where it is no longer known. */
  readonly attempt?: number | undefined
}

export type OutputStream = 'stdout' | 'stderr'

/** Messages of the lines about the life of a step. A line of output has the output as its message. */
export const stepStartedMessage = 'step started'
export const stepRunningMessage = 'step is running'
export const stepEndedMessage = 'step ended'
export const outputSkippedMessage = 'output skipped'
export const outputTruncatedMessage = 'output truncated, showing the tail'

export type StepEndFields = {
  /** Absent for a step that was skipped. */
  readonly startedAt?: string | undefined
  readonly endedAt: string
  readonly durationMs: number
  readonly result: 'ok' | 'failed' | 'skipped' | 'canceled' | 'unknown'
  /** Absent where the step did not exit by itself. */
  readonly exitCode?: number | undefined
  /** Why it failed. */
  readonly detail?: string | undefined
}

/** The content of a log line about a step. `atMs` is the wall clock of the node. */
export type StepLine = { readonly of: StepOfLine; readonly atMs: number } & (
  | { readonly what: 'output'; readonly stream: OutputStream; readonly text: string }
  /** The agent left out lines at this point, or before the first one. `log`: where they are. */
  | { readonly what: 'gap'; readonly stream: OutputStream; readonly log: string; readonly skippedBytes?: number }
  | { readonly what: 'started'; readonly startedAt: string; readonly isRunning: boolean }
  /** `isRepeated`: written again by an agent that started later. */
  | { readonly what: 'ended'; readonly end: StepEndFields; readonly isRepeated: boolean }
)

/** Undefined for other lines and for damaged ones. */
export function parseStepLine(line: unknown): StepLine | undefined {
  if (!isObject(line)) return undefined
  const text = (key: string): string | undefined => (typeof line[key] === 'string' ? line[key] : undefined)
  const number = (key: string): number | undefined => (typeof line[key] === 'number' ? line[key] : undefined)
  const [skyhook, packageName, mode, step] = [text('skyhook'), text('package'), text('mode'), text('step')]
  const message = text('message')
  if (skyhook === undefined || packageName === undefined || mode === undefined || step === undefined) return undefined
  if (message === undefined) return undefined
  const of: StepOfLine = {
    skyhook,
    package: packageName,
    version: text('version'),
    mode,
    step,
    stepId: text('stepId') ?? '',
    attempt: number('attempt'),
  }
  const base = { of, atMs: Date.parse(text('time') ?? '') }
  const stream = text('stream')
  if (stream === 'stdout' || stream === 'stderr') {
    const log = text('log')
    if (log === undefined) return { ...base, what: 'output', stream, text: message }
    const skippedBytes = number('skippedBytes')
    return { ...base, what: 'gap', stream, log, ...(skippedBytes !== undefined && { skippedBytes }) }
  }
  const startedAt = text('startedAt')
  if (message === stepStartedMessage || message === stepRunningMessage)
    return startedAt === undefined
      ? undefined
      : { ...base, what: 'started', startedAt, isRunning: message === stepRunningMessage }
  const [endedAt, durationMs, result] = [text('endedAt'), number('durationMs'), text('result')]
  if (message !== stepEndedMessage || endedAt === undefined || durationMs === undefined || !isResult(result))
    return undefined
  const end = { startedAt, endedAt, durationMs, result, exitCode: number('exitCode'), detail: text('detail') }
  return { ...base, what: 'ended', end, isRepeated: line['repeated'] === true }
}

const isResult = (text: string | undefined): text is StepEndFields['result'] =>
  text === 'ok' || text === 'failed' || text === 'skipped' || text === 'canceled' || text === 'unknown'
