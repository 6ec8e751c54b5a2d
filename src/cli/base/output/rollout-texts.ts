/** Texts about a rollout that the terminal and the dashboard share. Pure, without modules of Node. */
import { named, counted } from '../../../schemas/wording.ts'
import { durationText } from './durations.ts'
import type { NodeStep } from '../../../schemas/published.ts'
import type { NodeStatus } from '../../../schemas/skyhook.ts'

const maxVersions = 3

export type PackageVersions = {
  readonly name: string
  /** The version of the spec; absent for a package that left it. */
  readonly version?: string
  /** Other versions, on nodes that are not complete. */
  readonly from: readonly string[]
}

/** `tuned 1.0.0 -> 1.1.0`; installed versions come first, if they differ from the next one. */
export function packageText({ name, version, from }: PackageVersions): string {
  const before = named(from, maxVersions)
  if (version === undefined) return `${name} ${before} -> removed`
  return from.length === 0 ? `${name} ${version}` : `${name} ${before} -> ${version}`
}

export type Pace = {
  readonly nodesPerHour: number
  /** Until all nodes are complete, if nothing changes. */
  readonly restMs: number
  /** Completions that were measured. */
  readonly measured: number
}

/** The rate in two digits, as a plain number: 750, 7.5, 0.75. */
export const paceText = ({ nodesPerHour, restMs, measured }: Pace): string =>
  `${Number(nodesPerHour.toPrecision(2))} nodes per hour by the last ${measured}, about ${durationText(restMs)} left`

/** Not every node that uses the budget is out of service: some work needs no interrupt. */
export function budgetUseText(limit: number | 'unlimited' | { readonly unknown: string }, used: number): string {
  if (limit === 'unlimited') return `no limit, ${used} in use`
  return typeof limit === 'number' ? `${used} of ${limit} in use` : `${used} in use, limit unknown: ${limit.unknown}`
}

const marks: Readonly<Record<NodeStatus, string>> = {
  complete: '#',
  in_progress: '+',
  erroring: '!',
  blocked: 'x',
  unknown: '?',
  waiting: '.',
  paused: '.',
  disabled: '.',
}

export const shownStatuses = Object.keys(marks) as readonly NodeStatus[]

export const statusName = (status: NodeStatus): string => status.replace('_', ' ')

type NodeCounts = { readonly selected: number; readonly byStatus: Readonly<Partial<Record<NodeStatus, number>>> }

/** Of at least one selected node: 100 only if all are complete. */
export const completePercent = ({ selected, byStatus }: NodeCounts): number =>
  Math.floor((100 * (byStatus.complete ?? 0)) / selected)

const barWidth = 30

/** Each state with a node has a place, and complete is full only when all are. */
export function barText({ selected, byStatus }: NodeCounts): string {
  const present = shownStatuses.flatMap((status) => {
    const count = byStatus[status] ?? 0
    return count > 0
      ? [{ mark: marks[status], count, width: Math.max(1, Math.floor((count * barWidth) / selected)) }]
      : []
  })
  const widest = present.toSorted((a, b) => b.width - a.width)[0]
  const missing = barWidth - present.reduce((sum, { width }) => sum + width, 0)
  return present.map((part) => part.mark.repeat(part.width + (part === widest ? missing : 0))).join('')
}

/** Consecutive failures, and the time of the next attempt; either may be unknown. */
type Attempts = { readonly attempts?: number | undefined; readonly nextTryMs?: number | undefined }

/** Such as `, 4 failed attempts, the next one in 32s`; `''` if both are unknown. */
export function attemptsText({ attempts, nextTryMs }: Attempts, nowMs: number): string {
  if (attempts === undefined) return ''
  const next =
    nextTryMs === undefined || nextTryMs <= nowMs ? '' : `, the next one in ${durationText(nextTryMs - nowMs)}`
  return `, ${counted(attempts, 'failed attempt')}${next}`
}

export type RunningStep = NodeStep & {
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
