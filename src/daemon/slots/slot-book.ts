/**
 * What this node knows of its slots, as plain data with transitions. Pure.
 *
 * Two sources tell of them: answers to the node's own requests, and a watch of the Leases that name the node. An answer
 * is final about its moment. A watch may be late, and after a restore of etcd it shows the past; so it only raises
 * questions: a slot that nobody here knows is `seen`, one that is missing is in doubt. The next write answers them.
 * Identity is the uid of the Lease: resourceVersions go back when etcd is restored.
 */
import type { Slot } from '../../lease/slot.ts'
import type { SlotOwnership, SpecVersions } from '../../stages/model/snapshot.ts'

export type SlotBook = {
  /** By uid of the Lease. */
  readonly held: ReadonlyMap<string, HeldSlot>
  /** Uids of slots that an answer ended and whose deletion the watch has not shown yet. */
  readonly ended: ReadonlySet<string>
  /** Uids whose deletion the watch has shown: an answer to a request that was sent before may come later. */
  readonly deleted: ReadonlySet<string>
  /** Uids of the last slots that an answer ended: what was granted before is entered late where two were asked for. */
  readonly gone: readonly string[]
}

export type HeldSlot = {
  readonly slot: Slot
  readonly ownership: SlotOwnership
  /** What granted it, or confirmed it last; absent where this agent did neither. */
  readonly admittedUnder?: SpecVersions | undefined
  readonly renewedAtMs: number
  readonly grantedAtMs: number
}

/** Far more than the slots of one request. */
const maxGone = 16

export const emptySlotBook: SlotBook = { held: new Map(), ended: new Set(), deleted: new Set(), gone: [] }

/** The API server created it for us. Another one of its name is gone: kept, it would pass for the better of the two. */
export function granted(book: SlotBook, slot: Slot, admittedUnder: SpecVersions | undefined, nowMs: number): SlotBook {
  if (book.gone.includes(slot.uid)) return book
  const namesakes = [...book.held.values()].filter(({ slot: { name, uid } }) => name === slot.name && uid !== slot.uid)
  const others = namesakes.reduce((next, namesake) => ended(next, namesake.slot.uid), book)
  if (ownershipOf(book, slot.uid) === 'releasing') return update(others, slot.uid, { slot })
  const entry = { slot, admittedUnder, grantedAtMs: nowMs }
  return withHeld(
    others,
    book.deleted.has(slot.uid)
      ? { ...entry, ownership: 'seen', renewedAtMs: 0 }
      : { ...entry, ownership: 'owned', renewedAtMs: nowMs },
  )
}

/** It is about to be written: a deletion that was shown before does not speak against the answer. */
export const writing = (book: SlotBook, uid: string): SlotBook =>
  book.deleted.has(uid) ? { ...book, deleted: without(book.deleted, uid) } : book

/** It was written, and is ours. Whether new work may start under it is another question. */
export function renewed(book: SlotBook, slot: Slot, nowMs: number): SlotBook {
  if (book.deleted.has(slot.uid)) return update(book, slot.uid, { slot })
  const ownership = ownershipOf(book, slot.uid) === 'releasing' ? 'releasing' : 'owned'
  return update(book, slot.uid, { slot, ownership, renewedAtMs: nowMs })
}

/** The Skyhook was read after the grant and still admits it. The same book when the slot came in doubt meanwhile. */
export function confirmed(book: SlotBook, slot: Slot, admittedUnder: SpecVersions, nowMs: number): SlotBook {
  const before = ownershipOf(book, slot.uid)
  if (before === 'releasing' || before === 'seen') return book
  return update(book, slot.uid, { slot, ownership: 'confirmed', admittedUnder, renewedAtMs: nowMs })
}

/** It is about to be deleted: whoever decides meanwhile must not go on under it. */
export const releasing = (book: SlotBook, uid: string): SlotBook => update(book, uid, { ownership: 'releasing' })

const ownershipOf = (book: SlotBook, uid: string): SlotOwnership | undefined => book.held.get(uid)?.ownership

/** An answer said that it is gone, or not ours. */
export const ended = (book: SlotBook, uid: string): SlotBook => ({
  held: withoutKey(book.held, uid),
  ended: book.deleted.has(uid) ? book.ended : new Set(book.ended).add(uid),
  deleted: without(book.deleted, uid),
  gone: [...book.gone, uid].slice(-maxGone),
})

/** The watch shows it. An event that is older than our answer changes nothing. */
export function seen(book: SlotBook, slot: Slot, nowMs: number): SlotBook {
  if (book.held.has(slot.uid) || book.ended.has(slot.uid)) return book
  return withHeld(book, { slot, ownership: 'seen', renewedAtMs: 0, grantedAtMs: nowMs })
}

/** The watch shows its deletion. What is shown of this uid from now on is true again. */
export function deletionSeen(book: SlotBook, uid: string): SlotBook {
  if (book.ended.has(uid)) return { ...book, ended: without(book.ended, uid) }
  return doubted({ ...book, deleted: new Set(book.deleted).add(uid) }, uid)
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

function withoutKey<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  const copy = new Map(map)
  copy.delete(key)
  return copy
}

function without<T>(set: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const copy = new Set(set)
  copy.delete(one)
  return copy
}
