/** Conditions about problems that one node's reason or entry shows, and that users look for on the Skyhook. */
import type { NodeStateEntry } from '../schemas/annotations.ts'
import { apiGroup } from '../schemas/api.ts'
import type { ReasonName } from '../schemas/catalogue/reasons.ts'
import { formatTime } from '../schemas/time.ts'
import { clip } from '../schemas/plain-text.ts'
import { named } from '../schemas/wording.ts'
import type { ConditionContent } from './condition-content.ts'
import type { Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'
import type { NodeState } from './skyhook-status.ts'
import { formatNodeNames, maxDetailLength } from './summary-text.ts'

/** Nodes whose drain is blocked, the worst first, and nodes whose uninstall fails. */
export const problemConditions = (counts: Counts): ConditionContent[] => [
  drainBlockedCondition(counts),
  uninstallFailedCondition(counts),
]

const drainBlocked: ReasonName = 'DrainBlocked'
/** Each with its pods and budgets. */
const maxDrains = 5

/** The node whose drain has been blocked for the longest time comes first. */
function drainBlockedCondition({ nodes }: Counts): ConditionContent {
  const type = `${apiGroup}/DrainBlocked` as const
  const blocked = nodes
    .filter(({ agent, reason }) => reason?.reason === drainBlocked && agent !== 'silent')
    .toSorted((a, b) => blockedSinceMs(a) - blockedSinceMs(b) || (a.name < b.name ? -1 : 1))
  if (blocked.length === 0) return { type, status: 'False', reason: 'NotBlocked', message: 'no drain is blocked' }
  const drains = blocked.map((node) => {
    const sinceMs = blockedSinceMs(node)
    const since = sinceMs === Infinity ? '' : ` since ${formatTime(sinceMs)}`
    return `${node.name}${since} (${clip(node.reason?.message ?? '', maxDetailLength)})`
  })
  const message = `blocked drains: ${blocked.length}, the longest first: ${named(drains, maxDrains)}`
  return { type, status: 'True', reason: 'DrainBlocked', message }
}

const blockedSinceMs = ({ reason }: NodeFact): number => reason?.sinceMs ?? Infinity

/** An uninstall that failed is retried. That of a package which left the spec is given up after some attempts. */
function uninstallFailedCondition({ nodes }: Counts): ConditionContent {
  const type = `${apiGroup}/UninstallFailed` as const
  const read = new Map<NodeState, readonly NodeStateEntry[]>() // most nodes of a fleet share theirs
  const uninstallsIn = (entries: NodeState): readonly NodeStateEntry[] => {
    const known = read.get(entries) ?? Object.values(entries).filter(({ stage }) => stage === 'uninstall')
    read.set(entries, known)
    return known
  }
  const uninstalls = nodes.flatMap(({ name, entries }) =>
    uninstallsIn(entries).map((entry) => ({ entry, text: `${name} (${entry.name} ${entry.version})` })),
  )
  const givenUp = uninstalls.filter(({ entry }) => entry.state === 'unknown')
  // also during the next attempt, so that the message does not change with each
  const failing = uninstalls.filter(
    ({ entry: { state, restarts = 0 } }) => state === 'erroring' || (state === 'in_progress' && restarts > 0),
  )
  if (givenUp.length === 0 && failing.length === 0)
    return { type, status: 'False', reason: 'NotFailed', message: 'no uninstall has failed' }
  const say = (what: string, list: typeof uninstalls): string[] =>
    list.length === 0 ? [] : [`${what}: ${formatNodeNames(list.map(({ text }) => text))}`]
  const message = [...say('given up', givenUp), ...say('tried again', failing)].join('; ')
  return { type, status: 'True', reason: 'UninstallFailed', message }
}
