/** Rollouts as text: one block for each Skyhook. No state is told by color. */
import type { Known } from '../../stages/model/snapshot.ts'
import { durationText } from '../output/durations.ts'
import { attemptsText, runningStepText } from '../output/running-steps.ts'
import { shownLine, shownLines } from '../../schemas/plain-text.ts'
import { barText, completePercent, shownStatuses, statusName } from '../output/node-states.ts'
import type { ClosedNodes, Closure } from './closed-nodes.ts'
import {
  type BudgetUse,
  type NodeCounts,
  outAndJoining,
  type Pace,
  type ReasonGroup,
  type SkyhookStatus,
  type SlotHolder,
  type StepGroup,
} from './fleet-status.ts'
import { counted, named } from '../../schemas/wording.ts'

const maxNames = 4
const maxHolders = 5
const maxGroups = 6

export function statusText(skyhooks: readonly SkyhookStatus[], nowMs: number): string {
  if (skyhooks.length === 0) return 'no Skyhooks\n'
  return skyhooks.map((skyhook) => blockText(skyhook, nowMs)).join('\n')
}

function blockText(skyhook: SkyhookStatus, nowMs: number): string {
  const { name, nodes, budget, groups, steps, closed, pace, stalled } = skyhook
  const flags = [
    ...(skyhook.isDeleting ? ['being deleted'] : []),
    ...(skyhook.isDisabled ? ['disabled'] : []),
    ...(skyhook.isPaused ? ['paused'] : []),
    ...(stalled === undefined ? [] : [`stalled: ${stalled}`]),
  ]
  const lines = [
    `${name}  ${countsText(nodes)}`,
    ...flags.map((flag) => `  ${flag}`),
    ...groupLines(groups, nowMs),
    ...stepLines(steps, nowMs),
    ...(closed.length > 0 ? [`  ${closedText(closed)}`] : []),
    `  budget: ${budgetText(budget, nowMs)}`,
    ...(pace ? [`  pace: ${paceText(pace)}`] : []),
  ]
  return shownLines(lines)
}

function countsText(nodes: Known<NodeCounts>): string {
  if (!nodes.known) return `nodes unknown: ${nodes.why}`
  const { selected, byStatus } = nodes.value
  if (selected === 0) return 'no node is selected'
  const counts = shownStatuses.flatMap((status) => {
    const count = byStatus[status] ?? 0
    return status === 'complete' || count > 0 ? [`${count} ${statusName(status)}`] : []
  })
  return `[${barText(nodes.value)}] ${completePercent(nodes.value)}% of ${selected}: ${counts.join(', ')}`
}

function groupLines(groups: readonly ReasonGroup[], nowMs: number): readonly string[] {
  const lines = groups.slice(0, maxGroups).map(({ reason, message, nodes, sinceMs, ...attempts }) => {
    const forMs = sinceMs === undefined ? '' : ` for ${durationText(nowMs - sinceMs)}`
    const since = `${forMs}${attemptsText(attempts, nowMs)}`
    const [first = ''] = message.split('\n')
    return `  ${counted(nodes.length, 'node')} ${reason}${since}: ${first} [${named(nodes, maxNames)}]`
  })
  const rest = groups.slice(maxGroups)
  const restNodes = rest.reduce((sum, { nodes }) => sum + nodes.length, 0)
  return rest.length === 0
    ? lines
    : [...lines, `  ${counted(restNodes, 'node')} with ${counted(rest.length, 'more reason')}`]
}

function stepLines(steps: readonly StepGroup[], nowMs: number): readonly string[] {
  const lines = steps
    .slice(0, maxGroups)
    .map(
      (step) =>
        `  ${counted(step.nodes.length, 'node')}: ${runningStepText(step, nowMs)} [${named(step.nodes, maxNames)}]`,
    )
  const rest = steps.slice(maxGroups)
  return rest.length === 0 ? lines : [...lines, `  ${counted(rest.length, 'more step')} that take long`]
}

function budgetText(budget: Known<BudgetUse>, nowMs: number): string {
  if (!budget.known) return `unknown: ${budget.why}`
  const { limit, holders } = budget.value
  const allowed =
    limit === 'unlimited' ? 'no limit' : typeof limit === 'number' ? `of ${limit}` : `limit unknown: ${limit.unknown}`
  const listed = (some: readonly SlotHolder[]): string => {
    const texts = some.map(({ node, phase, sinceMs }) => {
      const since = sinceMs === undefined ? '' : ` ${durationText(nowMs - sinceMs)}`
      return `${node} (${phase}${since})`
    })
    return texts.length === 0 ? '' : `: ${named(texts, maxHolders)}`
  }
  const { out, joining } = outAndJoining(holders)
  const beside =
    joining.length === 0
      ? ''
      : `; beside it ${counted(joining.length, 'node')} closed for new pods ` +
        `by the runtime-required taint${listed(joining)}`
  return `${counted(out.length, 'node')} out, ${allowed}${listed(out)}${beside}`
}

const paceText = ({ nodesPerHour, restMs, measured }: Pace): string =>
  `${nodesPerHour.toPrecision(2)} nodes per hour by the last ${measured}, about ${durationText(restMs)} left`

const closureTexts: Readonly<Record<Closure, string>> = {
  taint: 'by the runtime-required taint',
  cordon: 'by a cordon of the Skyhook',
  'keep-cordoned': 'by node hold',
}

/** In one line; `''` where there are none. */
export function closedText(closed: readonly ClosedNodes[]): string {
  const parts = closed.map(
    ({ by, nodes }) => `${counted(nodes.length, 'node')} ${closureTexts[by]} [${named(nodes, maxNames)}]`,
  )
  return parts.length === 0 ? '' : `closed for new pods, nothing at work: ${parts.join(', ')}`
}

/** One Skyhook in one line without ages, for logs: it is the same while nothing has changed. */
export function statusLine({ name, nodes, budget, stalled }: SkyhookStatus): string {
  const out = budget.known ? `, ${outAndJoining(budget.value.holders).out.length} out` : ''
  const suffix = stalled === undefined ? '' : `, stalled: ${stalled}`
  return shownLine(`${name}: ${nodes.known ? stateCounts(nodes.value) : nodes.why}${out}${suffix}`)
}

function stateCounts({ selected, byStatus }: NodeCounts): string {
  const counts = shownStatuses.flatMap((status) =>
    byStatus[status] ? [`${byStatus[status]} ${statusName(status)}`] : [],
  )
  return `${byStatus.complete ?? 0}/${selected} complete (${counts.join(', ')})`
}
