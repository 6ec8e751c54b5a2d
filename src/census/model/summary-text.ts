import { clip } from '../../schemas/plain-text.ts'
import type { NodeFact } from './node-facts.ts'
import { statusesByUrgency } from './skyhook-status.ts'
import { counted, named } from '../../schemas/wording.ts'

/** More names help nobody, and 700 long ones make the API server refuse the whole status. */
const maxNames = 20
/** Of the message of one node, in a message about many. */
export const maxDetailLength = 200

/** In a message about many nodes. */
export const formatNodeNames = (names: readonly string[]): string => named(names, maxNames)

/** The incomplete nodes, the worst first: `; erroring: n1 (StepFailed: …); waiting: n2, n3 (WaitingForSlot)`. */
export function formatIncompleteNodes(nodes: readonly NodeFact[]): string {
  let namesLeft = maxNames
  return statusesByUrgency
    .flatMap((status) => {
      if (status === 'complete') return []
      const group = nodes.filter((node) => node.status === status)
      if (group.length === 0) return []
      const names = named(
        group.map(({ name }) => name),
        namesLeft,
      )
      const isCutOff = namesLeft === 0
      namesLeft -= Math.min(namesLeft, group.length)
      const why = formatReasons(group)
      return [`; ${status}: ${isCutOff ? counted(group.length, 'node') : names}${why === '' ? '' : ` (${why})`}`]
    })
    .join('')
}

/** The reasons of a group; if a person has to act on one, also its first message. */
function formatReasons(group: readonly NodeFact[]): string {
  const [first] = group
  const reasons = group
    .map(({ agent, reason }) => (agent === 'silent' ? 'AgentNotReady' : reason?.reason))
    .filter((reasonCode) => reasonCode !== undefined)
  const distinct = [...new Set(reasons)].toSorted().slice(0, 5)
  const includesMessage = first !== undefined && (first.status === 'erroring' || first.status === 'blocked')
  const detail = includesMessage ? group.find(({ reason }) => reason !== undefined)?.reason?.message : undefined
  if (detail === undefined) return distinct.join(', ')
  return `${distinct.join(', ')}: ${clip(detail, maxDetailLength)}`
}
