/** What a state of the fleet is, and which states are the same. */
import type { SlotOwnership } from '../../../src/stages/model/snapshot.ts'
import type { CoreId } from './core.ts'

export type ScopeName = 'skyhook' | 'control-plane'

/** A Lease of the node: as the API server has it, and as the agent's book has it. */
export type SlotEntry = {
  readonly scope: ScopeName
  readonly at: number | 'recovery'
  /** Of an earlier registration of the node. */
  readonly isFormer: boolean
  readonly isInApi: boolean
  readonly book: SlotOwnership | 'ended' | undefined
  /** Generation that admitted it; 0 = this agent did not ask for it. */
  readonly generation: number
  /** Read by the confirmation under way, which now has to LIST. */
  readonly confirming: number
  /** A DELETE of it is under way that nobody waits for any more. */
  readonly isDeletionLate: boolean
  /** Nodes that were out without a slot when the LIST was taken that admitted it, one bit each. */
  readonly unseen: number
}

export type Creation = { readonly scope: ScopeName; readonly at: number | 'recovery' }
/** Between a LIST and the CREATEs that it admitted. */
export type Creating = {
  readonly slots: readonly [Creation, ...Creation[]]
  /** That the node knew at the LIST. */
  readonly generation: number
  /** Nodes that were out without a slot at the LIST, one bit each. */
  readonly unseen: number
}
/** Nobody waits for it any more, and the API server may still carry it out. */
export type LateCreation = Creation & { readonly isFormer: boolean; readonly isOfThisAgent: boolean }

/**
 * The confirming read of a node that is out or may go out. `safe`: whatever the others do, fewer nodes than the limit
 * went out before it.
 */
export type Admission =
  | 'safe'
  | {
      readonly limit: number
      /** Others that were out, or went out under an earlier read. */
      readonly before: number
      /** Others that may still go out under an earlier read, one bit each. */
      readonly pending: number
    }

export type FleetNode = {
  readonly core: CoreId
  readonly isAgentUp: boolean
  /** Generation of the Skyhook that the agent has seen. */
  readonly generation: number
  readonly slots: readonly SlotEntry[]
  /** The control plane's slot is held by another node, by the last answer. */
  readonly isDenied: boolean
  /** Index of the unanswered CREATE that the agent remembers. */
  readonly unanswered: Readonly<Record<ScopeName, number | undefined>>
  readonly late: readonly LateCreation[]
  readonly creating: Creating | undefined
  /** A person took the slot away: until the next one, the node does not count in the scope. */
  readonly isExempt: Readonly<Record<ScopeName, boolean>>
  readonly admission: Admission | undefined
  /** What the administrator last asked for. */
  readonly shouldBeUnschedulable: boolean
}

export type Fleet = {
  readonly nodes: readonly FleetNode[]
  /** Of the Skyhook: which of the budgets is in force. */
  readonly generation: number
  readonly faultsLeft: number
}

export const noAnswerMissing = { skyhook: undefined, 'control-plane': undefined } as const

export const bit = (index: number): number => 1 << index

export const newEntry = (creation: Creation, change: Partial<SlotEntry>): SlotEntry => ({
  scope: creation.scope,
  at: creation.at,
  isFormer: false,
  isInApi: true,
  book: undefined,
  generation: 0,
  confirming: 0,
  isDeletionLate: false,
  unseen: 0,
  ...change,
})

const textsOfNodes = new WeakMap<FleetNode, string>()

/** Equal exactly for equal nodes: their keys come in one order, and the entries of a list have one shape. */
function textOf(node: FleetNode): string {
  let text = textsOfNodes.get(node)
  if (text === undefined) textsOfNodes.set(node, (text = Object.values(node).map(valueText).join(';')))
  return text
}

type Plain = string | number | boolean | undefined | readonly Plain[] | { readonly [key: string]: Plain }

/** Lists are sets: which slot the node got first makes no difference. */
function valueText(value: Plain): string {
  if (typeof value !== 'object') return value === undefined ? '' : String(value)
  const texts = Object.values(value).map(valueText)
  return Array.isArray(value) ? texts.sort().join(',') : texts.join(':')
}

/** The same fleet with its nodes in one order: nodes are interchangeable. */
export function canonical(fleet: Fleet): Fleet {
  const order = fleet.nodes.map((node, index) => ({ index, text: textOf(node) }))
  order.sort((a, b) => (a.text < b.text ? -1 : Number(a.text > b.text)))
  if (order.every(({ index }, place) => index === place)) return fleet
  const places = order.map(({ index }) => index)
  const nodes = places.flatMap((index) => {
    const node = fleet.nodes[index]
    return node ? [withPlaces(node, places)] : []
  })
  return { ...fleet, nodes }
}

/** Of a canonical fleet. */
export const keyOf = ({ nodes, generation, faultsLeft }: Fleet): string =>
  `${nodes.map(textOf).join('|')}|${generation}|${faultsLeft}`

/** The masks of a node when node `places[i]` becomes node i. */
function withPlaces(node: FleetNode, places: readonly number[]): FleetNode {
  const moved = (mask: number): number =>
    mask === 0 ? 0 : places.reduce((sum, from, to) => sum | (mask & bit(from) ? bit(to) : 0), 0)
  const { admission, creating } = node
  const hasMasks =
    (typeof admission === 'object' && admission.pending !== 0) ||
    (creating !== undefined && creating.unseen !== 0) ||
    node.slots.some(({ unseen }) => unseen !== 0)
  if (!hasMasks) return node
  return {
    ...node,
    creating: creating && { ...creating, unseen: moved(creating.unseen) },
    slots: node.slots.map((entry) => ({ ...entry, unseen: moved(entry.unseen) })),
    admission: typeof admission === 'object' ? { ...admission, pending: moved(admission.pending) } : admission,
  }
}
