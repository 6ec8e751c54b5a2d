import type { NodeStatus } from '../schemas/skyhook.ts'
import type { NodeFact } from './node-facts.ts'

/** More names help nobody, and 700 long ones make the API server refuse the whole status. */
export const MOST_NAMES = 20
const LONGEST_WORDS = 200

/** `a, b, c`, or the first twenty and how many more. */
export function nodeList(names: readonly string[], atMost = MOST_NAMES): string {
  if (names.length <= atMost) return names.join(', ')
  return `${names.slice(0, atMost).join(', ')} and ${names.length - atMost} more`
}

/** The incomplete nodes by status, the worst first, with reasons: `; erroring: n1 (StepFailed: …); waiting: n2, n3 (WaitingForSlot)`. */
export function stateOfNodes(nodes: readonly NodeFact[]): string {
  let namesLeft = MOST_NAMES
  return told
    .flatMap((status) => {
      const group = nodes.filter((node) => node.status === status)
      if (group.length === 0) return []
      const names = nodeList(
        group.map(({ name }) => name),
        namesLeft,
      )
      const isCutOff = namesLeft === 0
      namesLeft -= Math.min(namesLeft, group.length)
      const why = reasonsOf(group)
      return [`; ${status}: ${isCutOff ? `${group.length} nodes` : names}${why === '' ? '' : ` (${why})`}`]
    })
    .join('')
}

const told: readonly NodeStatus[] = ['erroring', 'blocked', 'in_progress', 'unknown', 'waiting', 'paused', 'disabled']

/** The reasons of a group; of one that a person has to act on also the first message. */
function reasonsOf(group: readonly NodeFact[]): string {
  const [first] = group
  const words = group
    .map(({ agent, reason }) => (agent === 'silent' ? 'AgentNotReady' : reason?.reason))
    .filter((word) => word !== undefined)
  const distinct = [...new Set(words)].toSorted().slice(0, 5)
  const wantsMessage = first !== undefined && (first.status === 'erroring' || first.status === 'blocked')
  const detail = wantsMessage ? group.find(({ reason }) => reason !== undefined)?.reason?.message : undefined
  if (detail === undefined) return distinct.join(', ')
  return `${distinct.join(', ')}: ${detail.length > LONGEST_WORDS ? `${detail.slice(0, LONGEST_WORDS)}…` : detail}`
}
