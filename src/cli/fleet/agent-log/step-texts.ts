/** Lines about steps, for people and for programs. */
import { plainText } from '../../../schemas/plain-text.ts'
import type { StepLine, StepOfLine, StepEndFields } from '../../../schemas/step-log.ts'
import { elapsed } from '../../base/output/durations.ts'

export type StepSelection = {
  readonly skyhook: string
  readonly package?: string | undefined
  /** With its checks. */
  readonly stage?: string | undefined
}

/** Stages that have steps. */
export const stepStages = ['apply', 'config', 'interrupt', 'post-interrupt', 'upgrade', 'uninstall'] as const

export const isSelected = ({ of }: StepLine, { skyhook, package: name, stage }: StepSelection): boolean =>
  of.skyhook === skyhook &&
  (name === undefined || of.package === name) &&
  (stage === undefined || of.mode === stage || of.mode === `${stage}-check`)

/** That of the chart without values. */
export const defaultLogRoot = '/var/log/skyhook'

/**
 * The host's folder for output that is in no log. Its folders have the package's name from config.json. A Skyhook may
 * use another name for it, and the log does not show which.
 */
export const hostFolderOf = ({ skyhook, package: name }: StepSelection, logRoot = defaultLogRoot): string =>
  `${logRoot}/${skyhook}${name === undefined ? '' : `, below the package_name in the config.json of ${name}`}`

/** With several packages, all lines of a step come before those of the next step of its package. */
export function inStepOrder<T extends { readonly line: StepLine }>(lines: readonly T[]): readonly T[] {
  const ofPackage = Map.groupBy(lines, ({ line }) => line.of.package)
  const sorted = new Map(
    [...ofPackage].map(([name, own]) => [name, [...Map.groupBy(own, stepOf).values()].flat().values()]),
  )
  return lines.map((logged) => sorted.get(logged.line.of.package)?.next().value ?? logged)
}

const stepOf = ({ line }: { readonly line: StepLine }): string => line.of.stepId

/** One line for a terminal: output as it is, everything else between dashes. */
export function textOf(line: StepLine): string {
  switch (line.what) {
    case 'output':
      return line.text
    case 'gap': {
      const amount = line.skippedBytes === undefined ? 'some output' : `${line.skippedBytes} bytes of output`
      return `--- ${amount} left out; the host has all of it in ${line.log} ---`
    }
    case 'started':
      return `--- ${nameOf(line.of)} ${line.isRunning ? 'is running since' : 'started'} ${line.startedAt} ---`
    case 'ended': {
      const { result, durationMs, exitCode } = line.end
      const code = exitCode === undefined ? '' : `, exit code ${exitCode}`
      return `--- ${nameOf(line.of)} ended: ${result} after ${elapsed(durationMs)}${code} ---`
    }
  }
}

/**
 * The text with its line end. If several nodes or packages are shown, `origin` is in front of each line, so that the
 * output of one cannot look like that of another. Empty: there is only one.
 */
export const linesFrom = (origin: string, text: string): string =>
  origin === ''
    ? `${text}\n`
    : plainText(text)
        .split('\n')
        .map((line) => `[${origin}] ${line}\n`)
        .join('')

function nameOf({ mode, step, package: name, version, attempt }: StepOfLine): string {
  const versionText = version === undefined ? '' : ` ${version}`
  const attemptText = attempt === undefined ? '' : ` (attempt ${attempt})`
  return `${mode} ${step} of ${name}${versionText}${attemptText}`
}

/** For `-o json`: all fields on one level. */
export function itemOf(node: string, { of, atMs, ...line }: StepLine, stamp: string): object {
  const time = Number.isNaN(atMs) ? stamp : new Date(atMs).toISOString()
  if (line.what !== 'ended') return { node, time, ...of, ...line }
  const { what, end, isRepeated } = line
  return { node, time, ...of, what, ...end, isRepeated }
}

/** The steps that an agent's log reports, each once. */
export type PastStep = StepOfLine & {
  readonly node: string
  readonly startedAt?: string | undefined
  readonly result: StepEndFields['result'] | 'running'
  readonly endedAt?: string | undefined
  readonly durationMs?: number | undefined
  readonly exitCode?: number | undefined
  readonly detail?: string | undefined
}

/** Oldest first. A step without a reported end is running. */
export function pastSteps(node: string, lines: readonly StepLine[]): readonly PastStep[] {
  const steps = new Map<string, PastStep>()
  for (const line of lines) {
    if (line.what === 'started') {
      const known = steps.get(line.of.stepId)
      if (known === undefined)
        steps.set(line.of.stepId, { node, ...line.of, startedAt: line.startedAt, result: 'running' })
    } else if (line.what === 'ended') steps.set(line.of.stepId, { node, ...line.of, ...line.end })
  }
  const orderOf = ({ startedAt, endedAt }: PastStep): string => startedAt ?? endedAt ?? ''
  return [...steps.values()].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : orderOf(a) > orderOf(b) ? 1 : 0))
}
