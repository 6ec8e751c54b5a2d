/** Rollouts as text: one block for each Skyhook. Color alone never shows a state. */
import type { Known } from '../../../stages/model/snapshot.ts'
import { durationText } from '../../base/output/durations.ts'
import {
  attemptsText,
  runningStepText,
  barText,
  completePercent,
  shownStatuses,
  statusName,
  budgetUseText,
  paceText,
  packageText,
} from '../../base/output/rollout-texts.ts'
import { shownLine, shownLines } from '../../../schemas/plain-text.ts'
import {
  type BudgetUse,
  type NodeCounts,
  outAndJoining,
  type ReasonGroup,
  type SkyhookStatus,
  type SlotHolder,
  type StepGroup,
} from './fleet-status.ts'
import { counted, named } from '../../../schemas/wording.ts'
import type { ClosedNodes, Closure } from './node-facts.ts'

const maxNames = 4
const maxHolders = 5
const maxGroups = 6

export function statusText(skyhooks: readonly SkyhookStatus[], nowMs: number): string {
  if (skyhooks.length === 0) return 'no Skyhooks\n'
  return skyhooks.map((skyhook) => shownLines(blockLines(skyhook, nowMs))).join('\n')
}

function blockLines(skyhook: SkyhookStatus, nowMs: number): readonly string[] {
  const { name, nodes, budget, groups, packages, steps, closed, held, ignored, pace, stalled, stalledSinceMs } = skyhook
  const stalledFor = stalledSinceMs === undefined ? '' : ` (for ${durationText(nowMs - stalledSinceMs)})`
  const flags = [
    ...(skyhook.isDeleting ? ['being deleted'] : []),
    ...(skyhook.isDisabled ? ['disabled'] : []),
    ...(skyhook.isPaused ? ['paused'] : []),
    ...(stalled === undefined ? [] : [`stalled: ${stalled}${stalledFor}`]),
  ]
  const closedLine = closedText(closed)
  // an ignored node with work is in its group
  const reported = new Set(groups.flatMap((group) => (group.reason === 'Ignored' ? group.nodes : [])))
  const unreported = ignored.filter((node) => !reported.has(node))
  const facts = [
    ...(nodes.known ? restCounts(nodes.value) : []),
    ...flags,
    ...(packages.length > 0 ? [`packages: ${packages.map(packageText).join(', ')}`] : []),
    ...groupLines(groups, nowMs),
    ...stepLines(steps, nowMs),
    ...(closedLine === '' ? [] : [closedLine]),
    ...(held.length > 0 ? [`held (node hold): ${named(held, maxNames)}`] : []),
    ...(unreported.length > 0 ? [`ignored (node ignore): ${named(unreported, maxNames)}`] : []),
    `budget: ${budgetText(budget, nowMs)}`,
    ...(pace ? [`pace: ${paceText(pace)}`] : []),
    ...nextLines(skyhook),
  ]
  return [`${name}  ${progressText(nodes)}`, ...facts.map((line) => `  ${line}`)]
}

function progressText(nodes: Known<NodeCounts>): string {
  if (!nodes.known) return `nodes unknown: ${nodes.why}`
  const { selected, byStatus } = nodes.value
  if (selected === 0) return 'no node is selected'
  const complete = `${byStatus.complete ?? 0} of ${counted(selected, 'node')} complete`
  return `[${barText(nodes.value)}] ${complete} (${completePercent(nodes.value)}%)`
}

/** Of the nodes that are not complete. */
function restCounts({ byStatus }: NodeCounts): readonly string[] {
  const counts = shownStatuses.flatMap((status) =>
    status !== 'complete' && byStatus[status] ? [`${byStatus[status]} ${statusName(status)}`] : [],
  )
  return counts.length === 0 ? [] : [counts.join(', ')]
}

/** The next command for nodes that need a person, or whose step takes longer than it should. */
function nextLines({ name, groups, steps }: SkyhookStatus): readonly string[] {
  const needy = groups.find(({ section }) => section !== 'waiting') ?? steps.find(({ slowerThan }) => slowerThan)
  const node = needy?.nodes[0]
  return node === undefined ? [] : [`next: kubectl skyhook explain ${name} ${node}`]
}

function groupLines(groups: readonly ReasonGroup[], nowMs: number): readonly string[] {
  const lines = groups.slice(0, maxGroups).map(({ reason, message, nodes, sinceMs, ...attempts }) => {
    const forMs = sinceMs === undefined ? '' : ` for ${durationText(nowMs - sinceMs)}`
    const since = `${forMs}${attemptsText(attempts, nowMs)}`
    const [first = ''] = message.split('\n')
    return `${counted(nodes.length, 'node')} ${reason}${since}: ${first} [${named(nodes, maxNames)}]`
  })
  const rest = groups.slice(maxGroups)
  const restNodes = rest.reduce((sum, { nodes }) => sum + nodes.length, 0)
  return rest.length === 0
    ? lines
    : [...lines, `${counted(restNodes, 'node')} with ${counted(rest.length, 'more reason')}`]
}

function stepLines(steps: readonly StepGroup[], nowMs: number): readonly string[] {
  const lines = steps
    .slice(0, maxGroups)
    .map(
      (step) =>
        `${counted(step.nodes.length, 'node')}: ${runningStepText(step, nowMs)} [${named(step.nodes, maxNames)}]`,
    )
  const rest = steps.slice(maxGroups)
  return rest.length === 0 ? lines : [...lines, `${counted(rest.length, 'more step')} that take long`]
}

function budgetText(budget: Known<BudgetUse>, nowMs: number): string {
  if (!budget.known) return `unknown: ${budget.why}`
  const { limit, holders } = budget.value
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
  return `${budgetUseText(limit, out.length)}${listed(out)}${beside}`
}

const closureTexts: Readonly<Record<Exclude<Closure, 'keep-cordoned'>, string>> = {
  taint: 'by the runtime-required taint',
  cordon: 'by a cordon of the Skyhook',
}

/** In one line, without those that are held, which have a line of their own; `''` where there are none. */
export function closedText(closed: readonly ClosedNodes[]): string {
  const parts = closed.flatMap(({ by, nodes }) =>
    by === 'keep-cordoned' ? [] : [`${counted(nodes.length, 'node')} ${closureTexts[by]} [${named(nodes, maxNames)}]`],
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
