/** The slots that this node holds, as plain data with transitions. Pure; slot-manager.ts sends the requests. */
import { labelKeys, type SkyhookIdentity, skyhookScope } from '../../lease/names.ts'
import type { Slot } from '../../lease/slot.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot } from '../../stages/model/snapshot.ts'

export type SlotBook = {
  /** By name of the Lease. */
  readonly held: ReadonlyMap<string, HeldSlot>
  /** The control plane's slot, held beside those of Skyhooks that may interrupt this node. */
  readonly controlPlane: Slot | undefined
}

export type HeldSlot = {
  readonly slot: Slot
  readonly skyhook: string
  /** Undefined for a slot of a Skyhook that neither the API server nor the journal knows. */
  readonly skyhookUid: string | undefined
  readonly isConfirmed: boolean
  readonly renewedAtMs: number
  readonly grantedAtMs: number
}

export const emptySlotBook: SlotBook = { held: new Map(), controlPlane: undefined }

/** The book of a starting agent: only recovery slots are confirmed, and all slots are due for renewal. */
export function loadSlots(
  book: SlotBook,
  own: readonly Slot[],
  knownSkyhooks: readonly SkyhookIdentity[],
  nowMs: number,
): SlotBook {
  const controlPlane = own.find(({ kind }) => kind === 'control-plane')
  const held = new Map<string, HeldSlot>()
  for (const slot of own) {
    if (slot === controlPlane) continue
    // the Skyhook whose uid hashes to the slot's scope
    const owner = knownSkyhooks.find((skyhook) => skyhookScope(skyhook).hash === slot.scope)
    held.set(slot.name, {
      slot,
      skyhook: owner?.name ?? slot.lease.metadata.labels?.[labelKeys.name] ?? slot.name,
      skyhookUid: owner?.uid,
      isConfirmed: slot.kind === 'recovery',
      renewedAtMs: 0,
      grantedAtMs: nowMs,
    })
  }
  return { ...book, held, controlPlane }
}

/** A new slot. */
export function grantSlot(
  book: SlotBook,
  slot: Slot,
  { name, uid }: SkyhookIdentity,
  isConfirmed: boolean,
  nowMs: number,
): SlotBook {
  const entry = { slot, skyhook: name, skyhookUid: uid, isConfirmed, renewedAtMs: nowMs, grantedAtMs: nowMs }
  return withHeld(book, entry)
}

/** The scope was read again after the grant: work may start. The same book when the slot was given up meanwhile. */
export const confirmSlot = (book: SlotBook, slot: Slot, nowMs: number): SlotBook =>
  update(book, slot.name, { slot, isConfirmed: true, renewedAtMs: nowMs })

/** The same book when the slot was given up meanwhile: an answer that comes late brings nothing back. */
export const renewSlot = (book: SlotBook, slot: Slot, nowMs: number): SlotBook =>
  update(book, slot.name, { slot, renewedAtMs: nowMs })

export const removeSlot = (book: SlotBook, lease: string): SlotBook => ({ ...book, held: without(book.held, lease) })

export const setControlPlaneSlot = (book: SlotBook, controlPlane: Slot | undefined): SlotBook => ({
  ...book,
  controlPlane,
})

/** The control plane's slot if no slot but `leaving` needs it any more. */
export const unusedControlPlaneSlot = ({ held, controlPlane }: SlotBook, leaving?: string): Slot | undefined =>
  [...held.keys()].every((lease) => lease === leaving) ? controlPlane : undefined

export const slotOf = ({ held }: SlotBook, skyhookUid: string): HeldSlot | undefined =>
  [...held.values()].find((entry) => entry.skyhookUid === skyhookUid)

/** As decisions see it. */
export const ownSlot = ({ slot, skyhook, skyhookUid, isConfirmed, renewedAtMs }: HeldSlot): OwnSlot => ({
  skyhook,
  skyhookUid,
  lease: slot.name,
  phase: slot.phase as SlotPhase,
  confirmed: isConfirmed,
  renewedAtMs,
})

const withHeld = (book: SlotBook, entry: HeldSlot): SlotBook => ({
  ...book,
  held: new Map(book.held).set(entry.slot.name, entry),
})

function update(book: SlotBook, lease: string, changes: Partial<HeldSlot>): SlotBook {
  const entry = book.held.get(lease)
  return entry ? withHeld(book, { ...entry, ...changes }) : book
}

function without<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  const copy = new Map(map)
  copy.delete(key)
  return copy
}
