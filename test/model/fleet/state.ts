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
  readonly unanswered: Readonly<Partial<Record<ScopeName, number>>>
  readonly late: readonly LateCreation[]
  /** Between a LIST and the CREATEs that it admitted. */
  readonly creating: readonly Creation[]
  readonly creatingUnder: number
  readonly creatingUnseen: number
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

const entryText = (entry: SlotEntry): string =>
  [
    entry.scope[0],
    entry.at,
    entry.isFormer ? 'f' : '',
    entry.isInApi ? 'a' : '',
    entry.book ?? '',
    entry.generation,
    entry.confirming,
    entry.isDeletionLate ? 'l' : '',
    entry.unseen,
  ].join(':')

const texts = new WeakMap<FleetNode, string>()

/** Equal exactly for equal nodes. */
function textOf(node: FleetNode): string {
  let text = texts.get(node)
  if (text === undefined) {
    const admission = typeof node.admission === 'object' ? Object.values(node.admission).join('/') : node.admission
    text = [
      node.core,
      node.isAgentUp ? 'u' : 'd',
      node.generation,
      node.slots.map(entryText).sort().join(','),
      node.isDenied ? 'd' : '',
      `${node.unanswered.skyhook ?? ''}:${node.unanswered['control-plane'] ?? ''}`,
      node.late
        .map((late) => Object.values(late).join(':'))
        .sort()
        .join(','),
      node.creating.map(({ scope, at }) => `${scope[0]}${at}`).join(','),
      node.creating.length > 0 ? `${node.creatingUnder}:${node.creatingUnseen}` : '',
      `${node.isExempt.skyhook ? 's' : ''}${node.isExempt['control-plane'] ? 'c' : ''}`,
      admission ?? '',
      node.shouldBeUnschedulable ? 'w' : '',
    ].join(';')
    texts.set(node, text)
  }
  return text
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
  const { admission } = node
  const hasMasks =
    (typeof admission === 'object' && admission.pending !== 0) ||
    node.creatingUnseen !== 0 ||
    node.slots.some(({ unseen }) => unseen !== 0)
  if (!hasMasks) return node
  return {
    ...node,
    creatingUnseen: moved(node.creatingUnseen),
    slots: node.slots.map((entry) => ({ ...entry, unseen: moved(entry.unseen) })),
    admission: typeof admission === 'object' ? { ...admission, pending: moved(admission.pending) } : admission,
  }
}
