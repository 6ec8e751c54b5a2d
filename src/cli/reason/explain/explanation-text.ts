/** Explanations as text. Each state has its own word: color alone never shows it. */
import { plainExcerpt, shownLines } from '../../../schemas/plain-text.ts'
import { besideCells, type Cell } from '../../base/output/wrap.ts'
import { durationText } from '../../base/output/durations.ts'
import { attemptsText, hangingStep, runningStepText } from '../../base/output/rollout-texts.ts'
import type { NodeExplanation } from './explain-node.ts'
import type { NodeGroup } from './node-groups.ts'
import type { Finding } from './finding.ts'
import { counted, named } from '../../../schemas/wording.ts'

const gateWidth = 10
const verdictWidth = 9

/** The chain of gates with the verdict of each, for one node. */
export function explanationText(explanation: NodeExplanation, nowMs: number): string {
  const { skyhook, node, state, verdict, gates, disagreement, doubt, left = [], isClosed, step } = explanation
  const headline = `Skyhook ${skyhook} on node ${node}: ${stateTexts[state]}${verdict ? ` (${verdict.cause})` : ''}`
  const rows = gates.flatMap(({ gate, verdict: gateVerdict, findings, why }) => {
    const cells: readonly Cell[] = [
      [gate, gateWidth],
      [verdictTexts[gateVerdict], verdictWidth],
    ]
    const lines = findings.flatMap((finding) => findingLines(finding, nowMs))
    return besideCells(cells, findings.length === 0 && why !== undefined ? [why] : lines)
  })
  const notes = [
    ...(isClosed ? ['Note: the node takes no new pods until it is complete: it has the runtime-required taint.'] : []),
    ...(left.length === 0 ? [] : [`Note: the interrupt ends pods that tolerate the cordon: ${left.join(', ')}.`]),
    ...(disagreement === undefined ? [] : [`Note: ${disagreement}.`]),
    ...(doubt === undefined ? [] : [`Note: what is done on the host is not known for sure: ${doubt}.`]),
  ]
  const hint = step === undefined || state !== 'working' ? [] : remedyLines(hangingStep(step, skyhook, node))
  const running = step === undefined ? [] : [runningStepText(step, nowMs), ...hint.map((line) => `  ${line}`)]
  return shownLines([headline, ...running, '', ...rows, ...(notes.length > 0 ? ['', ...notes] : [])])
}

const stateTexts: Readonly<Record<NodeExplanation['state'], string>> = {
  complete: 'complete',
  working: 'at work, nothing holds it up',
  'held-up': 'held up',
  'not-selected': 'not selected',
}

const verdictTexts = { open: 'open', closed: 'CLOSED', unknown: 'unknown', ahead: 'ahead' } as const

const remedyLines = ({ unblock, command }: Pick<Finding, 'unblock' | 'command'>): readonly string[] => [
  `unblock: ${unblock}`,
  `run:     ${command}`,
]

function findingLines(finding: Finding, nowMs: number): readonly string[] {
  const { message, sinceMs } = finding
  const since = sinceMs === undefined ? '' : ` (for ${durationText(nowMs - sinceMs)}${attemptsText(finding, nowMs)})`
  const [first = '', ...rest] = plainExcerpt(message, maxMessageLength).split('\n')
  return [
    rest.length === 0 ? `${first}${since}` : first,
    ...rest.map((line) => `  ${line}`),
    ...(rest.length > 0 && since !== '' ? [since.trim()] : []),
    ...remedyLines(finding),
  ]
}

export type SkyhookExplanation = {
  readonly groups: readonly NodeGroup[]
  readonly selected: number
  readonly complete: number
  /** Why it selects no node at all. */
  readonly unselected: Finding | undefined
}

/** Groups of nodes with the same cause, for a whole Skyhook. */
export function groupsText(
  skyhook: string,
  { groups, selected, complete, unselected }: SkyhookExplanation,
  nowMs: number,
): string {
  if (selected === 0)
    return shownLines([`Skyhook ${skyhook} selects no node`, ...(unselected ? findingLines(unselected, nowMs) : [])])
  const headline = `Skyhook ${skyhook}: ${complete} of ${selected} selected nodes are complete`
  const blocks = groups.flatMap(({ nodes, finding, state }) => {
    const count = counted(nodes.length, 'node')
    const names = named(nodes, maxNames)
    if (finding === undefined) return ['', `${count} ${stateTexts[state]}: ${names}`]
    const [first = '', ...rest] = findingLines(finding, nowMs)
    return ['', `${count} held up (${finding.cause}): ${names}`, `  ${first}`, ...rest.map((line) => `  ${line}`)]
  })
  return shownLines([headline, ...blocks])
}

const maxNames = 8
const maxMessageLength = 4_096
