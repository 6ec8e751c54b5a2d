/** The slots of a modeled node as the product's own data: the book, the slots that decisions see, the Leases. */
import type { HeldSlot, SlotBook } from '../../../src/daemon/slots/slot-book.ts'
import { controlPlaneScope, type Scope, skyhookScope } from '../../../src/lease/names.ts'
import type { Slot } from '../../../src/lease/slot.ts'
import type { OwnSlot } from '../../../src/stages/model/snapshot.ts'
import { listedSlot } from '../listed-slot.ts'
import { skyhook, skyhookUid } from './core.ts'
import type { FleetNode, ScopeName, SlotEntry } from './state.ts'

export const scopes: Readonly<Record<ScopeName, Scope>> = {
  skyhook: skyhookScope({ name: skyhook, uid: skyhookUid }),
  'control-plane': controlPlaneScope,
}

export const withEntry = (node: FleetNode, at: number, change: Partial<SlotEntry>): FleetNode => ({
  ...node,
  slots: node.slots.map((entry, place) => (place === at ? { ...entry, ...change } : entry)),
})

/** Runs a transition of the product's slot book. A slot's uid in it is its place, which stays during one step. */
export function changeBook(node: FleetNode, change: (book: SlotBook) => SlotBook): FleetNode {
  const held = new Map<string, HeldSlot>()
  const ended = new Set<string>()
  for (const [place, { book, generation }] of node.slots.entries()) {
    const uid = String(place)
    if (book === 'ended') ended.add(uid)
    else if (book !== undefined)
      held.set(uid, {
        slot: slotAt(node, place),
        ownership: book,
        admittedUnder: generation === 0 ? undefined : { generation },
        renewedAtMs: book === 'seen' ? 0 : 1,
        grantedAtMs: 0,
      })
  }
  // a request and its answer are one step of the model: nothing is shown in between
  const next = change({ held, ended, deleted: new Set(), gone: [] })
  const slots = node.slots.map((entry, place): SlotEntry => {
    const uid = String(place)
    const known = next.held.get(uid)
    const book = known?.ownership ?? (next.ended.has(uid) ? 'ended' : undefined)
    return { ...entry, book, generation: known?.admittedUnder?.generation ?? 0 }
  })
  return { ...node, slots }
}

export const heldAt = (node: FleetNode, place: number): HeldSlot | undefined => {
  let found: HeldSlot | undefined
  changeBook(node, (book) => {
    found = book.held.get(String(place))
    return book
  })
  return found
}

export function entryAt({ slots }: FleetNode, place: number): SlotEntry {
  const entry = slots[place]
  if (!entry) throw new Error(`no slot ${place}`)
  return entry
}

/** As the book and the watch name a slot. */
export const slotAt = (node: FleetNode, place: number): Slot => {
  const entry = entryAt(node, place)
  return { ...leaseOf(entry, 'own'), uid: String(place) }
}

/** The Lease of a slot, as a LIST shows it. */
export const leaseOf = ({ scope, at, isFormer }: SlotEntry, name: string): Slot =>
  listedSlot(scopes[scope], at === 'recovery' ? { kind: at } : { index: at }, {
    name,
    uid: isFormer ? 'former' : 'current',
  })

/** What the decisions of the node see of its slots. */
export function ownSlotsOf(node: FleetNode): OwnSlot[] {
  return node.slots.flatMap((entry, place): OwnSlot[] => {
    const { scope, at, book, isFormer } = entry
    if (book === undefined || book === 'ended') return []
    const isOfSkyhook = scope === 'skyhook'
    return [
      {
        scope,
        skyhook: isOfSkyhook ? skyhook : '',
        skyhookUid: isOfSkyhook ? skyhookUid : undefined,
        lease: `${scope}.${at === 'recovery' ? 'node' : `slot-${at}`}`,
        uid: String(place),
        phase: 'working',
        ownership: book,
        // each plan is made for the first generation, whichever the node has seen
        admittedUnder: { generation: isOfSkyhook && entry.generation !== node.generation ? 0 : 1 },
        isFormer,
        renewedAtMs: book === 'seen' ? 0 : 1,
      },
    ]
  })
}
