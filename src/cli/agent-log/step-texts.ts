/** Lines about steps, for people and for programs. */
import { plainText } from '../../schemas/plain-text.ts'
import type { StepLine, StepOfLine } from '../../schemas/step-log.ts'
import { elapsed } from '../output/durations.ts'

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

/** Where output is on the host that is in no log. */
export const hostFolderOf = ({ skyhook, package: name }: StepSelection): string =>
  `/var/log/skyhook/${skyhook}${name === undefined ? '' : `/${name}`}`

/** One line for a terminal: output as it is, everything else between dashes. */
export function textOf(line: StepLine): string {
  switch (line.what) {
    case 'output':
      return line.text
    case 'gap': {
      const amount = line.skippedBytes === undefined ? 'some output' : `${line.skippedBytes} bytes of output`
      return `--- ${amount} left out, the host has all of it in ${line.log} ---`
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
 * The text with its line end. Where several nodes are shown, each of its lines begins with the name of its `node`: what
 * one node writes does not look like the words of another.
 */
export const linesFrom = (node: string | undefined, text: string): string =>
  node === undefined
    ? `${text}\n`
    : plainText(text)
        .split('\n')
        .map((line) => `[${node}] ${line}\n`)
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
