/** Texts of all screens about running steps and failed attempts. Pure. */
import { counted } from '../../schemas/wording.ts'
import { durationText } from './durations.ts'

/** Consecutive failures, and the time of the next attempt; either may be unknown. */
export type Attempts = { readonly attempts?: number | undefined; readonly nextTryMs?: number | undefined }

/** Such as `, 4 failed attempts, the next one in 32s`; `''` if both are unknown. */
export function attemptsText({ attempts, nextTryMs }: Attempts, nowMs: number): string {
  if (attempts === undefined) return ''
  const next =
    nextTryMs === undefined || nextTryMs <= nowMs ? '' : `, the next one in ${durationText(nextTryMs - nowMs)}`
  return `, ${counted(attempts, 'failed attempt')}${next}`
}

export type RunningStep = {
  readonly name: string
  readonly version: string
  /** In the package's config.json, such as `apply-check`. */
  readonly mode: string
  readonly path: string
  /** In ms since 1970. */
  readonly sinceMs: number
  /** Of its stage, from 1. */
  readonly attempt: number
  /** When the first attempt failed; absent in that. */
  readonly failingSinceMs?: number
  /** It takes longer than all work of any node that has finished the same. */
  readonly slowerThan?: FinishedWork
}

type Remedy = { readonly unblock: string; readonly command: string }

/** How many nodes have finished, and the longest that one of them took, rounded up. */
export type FinishedWork = { readonly nodes: number; readonly slowestMs: number }

/** Without a full stop, such as `apply run.sh of tuned 1.2.0 has been running for 12m`. */
export function runningStepText(step: RunningStep, nowMs: number): string {
  const { name, version, mode, path, sinceMs, attempt, failingSinceMs, slowerThan } = step
  const failing = failingSinceMs === undefined ? '' : `, failing for ${durationText(nowMs - failingSinceMs)}`
  const tries = attempt === 1 ? '' : ` (attempt ${attempt}${failing})`
  const slow =
    slowerThan === undefined
      ? ''
      : `, longer than all work of each of the ${counted(slowerThan.nodes, 'node')} that finished ` +
        `(at most ${durationText(slowerThan.slowestMs)})`
  return `${mode} ${path} of ${name} ${version} has been running for ${durationText(nowMs - sinceMs)}${tries}${slow}`
}

/** The remedy for a step that never ends, and the command that shows what it does. */
export const hangingStep = ({ name, mode }: RunningStep, skyhook: string, node: string): Remedy => ({
  unblock: 'if it hangs, end what it waits for; a stageTimeout of its package makes a longer attempt fail',
  command:
    `kubectl skyhook logs ${skyhook} --node ${node} --package ${name} ` +
    `--stage ${mode.replace(/-check$/, '')} --follow`,
})

/** With the finished work where the step takes longer. */
export const compared = (step: RunningStep, finished: FinishedWork | undefined, nowMs: number): RunningStep =>
  finished && nowMs - step.sinceMs > finished.slowestMs ? { ...step, slowerThan: finished } : step
