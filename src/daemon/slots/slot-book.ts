/**
 * What this node knows of its slots, as plain data with transitions. Pure.
 *
 * Two sources tell of them: answers to the node's own requests, and a watch of the Leases that name the node. An answer
 * is final about its moment. A watch may be late, and after a restore of etcd it shows the past; so it only raises
 * questions: a slot that nobody here knows is `seen`, one that is missing is in doubt. The next write answers them.
 * Identity is the uid of the Lease: resourceVersions go back when etcd is restored.
 */
import type { Slot } from '../../lease/slot.ts'
import type { SlotOwnership } from '../../stages/model/snapshot.ts'

export type SlotBook = {
  /** By uid of the Lease. */
  readonly held: ReadonlyMap<string, HeldSlot>
  /** Uids of slots that an answer ended and whose deletion the watch has not shown yet. */
  readonly ended: ReadonlySet<string>
}

export type HeldSlot = {
  readonly slot: Slot
  readonly ownership: SlotOwnership
  /** Generation of the Skyhook that was admitted; absent where this agent did not ask for the slot. */
  readonly admittedGeneration?: number | undefined
  readonly renewedAtMs: number
  readonly grantedAtMs: number
}

export const emptySlotBook: SlotBook = { held: new Map(), ended: new Set() }

/** The API server created it for us. Another one of its name is gone: kept, it would pass for the better of the two. */
export function granted(book: SlotBook, slot: Slot, admittedGeneration: number | undefined, nowMs: number): SlotBook {
  const namesakes = [...book.held.values()].filter(({ slot: { name, uid } }) => name === slot.name && uid !== slot.uid)
  const others = namesakes.reduce((next, namesake) => ended(next, namesake.slot.uid), book)
  return withHeld(others, { slot, ownership: 'owned', admittedGeneration, renewedAtMs: nowMs, grantedAtMs: nowMs })
}

/** It was written, and is ours. Whether new work may start under it is another question. */
export const renewed = (book: SlotBook, slot: Slot, nowMs: number): SlotBook =>
  update(book, slot.uid, {
    slot,
    ownership: isReleasing(book, slot.uid) ? 'releasing' : 'owned',
    renewedAtMs: nowMs,
  })

/** The Skyhook was read after the grant and still admits it. The same book when the slot was given up meanwhile. */
export const confirmed = (book: SlotBook, slot: Slot, admittedGeneration: number, nowMs: number): SlotBook =>
  isReleasing(book, slot.uid)
    ? book
    : update(book, slot.uid, { slot, ownership: 'confirmed', admittedGeneration, renewedAtMs: nowMs })

/** It is about to be deleted: whoever decides meanwhile must not go on under it. */
export const releasing = (book: SlotBook, uid: string): SlotBook => update(book, uid, { ownership: 'releasing' })

const isReleasing = (book: SlotBook, uid: string): boolean => book.held.get(uid)?.ownership === 'releasing'

/** An answer said that it is gone, or not ours. */
export const ended = (book: SlotBook, uid: string): SlotBook => ({
  held: without(book.held, uid),
  ended: new Set(book.ended).add(uid),
})

/** The watch shows it. An event that is older than our answer changes nothing. */
export function seen(book: SlotBook, slot: Slot, nowMs: number): SlotBook {
  if (book.held.has(slot.uid) || book.ended.has(slot.uid)) return book
  return withHeld(book, { slot, ownership: 'seen', renewedAtMs: 0, grantedAtMs: nowMs })
}

/** The watch shows its deletion. What is shown of this uid from now on is true again. */
export function deletionSeen(book: SlotBook, uid: string): SlotBook {
  const others = new Set(book.ended)
  others.delete(uid)
  return doubted({ ...book, ended: others }, uid)
}

/** A LIST is complete, and may be older than our last answers: what it lacks is in doubt, what it shows may be true. */
export function listed(book: SlotBook, slots: readonly Slot[], nowMs: number): SlotBook {
  const uids = new Set(slots.map(({ uid }) => uid))
  const missing = [...book.held.keys()].filter((uid) => !uids.has(uid))
  let next: SlotBook = { ...book, ended: new Set() }
  for (const slot of slots) next = seen(next, slot, nowMs)
  for (const uid of missing) next = doubted(next, uid)
  return next
}

/** It may be gone: the next write tells. */
export const doubted = (book: SlotBook, uid: string): SlotBook =>
  update(book, uid, { ownership: 'seen', renewedAtMs: 0 })

const withHeld = (book: SlotBook, entry: HeldSlot): SlotBook => ({
  ...book,
  held: new Map(book.held).set(entry.slot.uid, entry),
})

function update(book: SlotBook, uid: string, changes: Partial<HeldSlot>): SlotBook {
  const entry = book.held.get(uid)
  return entry ? withHeld(book, { ...entry, ...changes }) : book
}

function without<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  const copy = new Map(map)
  copy.delete(key)
  return copy
}
