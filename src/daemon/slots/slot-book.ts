/**
 * What this node knows about its slots, as plain data with transitions. Pure.
 *
 * There are two sources: answers to the node's own requests, and a watch of the Leases that name the node. An answer is
 * definite for its time. A watch may be late, and after a restore of etcd it shows the past. Therefore it only raises
 * questions: an unknown slot is `seen`, a missing slot is in doubt. The next write answers them. The uid of the Lease
 * is its identity, because resourceVersions go back when etcd is restored.
 */
import type { Slot } from '../../lease/slot.ts'
import type { SlotOwnership, SpecVersions } from '../../stages/model/snapshot.ts'

export type SlotBook = {
  /** By uid of the Lease. */
  readonly held: ReadonlyMap<string, HeldSlot>
  /** Uids of slots that an answer has ended, until the watch shows their deletion. */
  readonly ended: ReadonlySet<string>
  /** Uids whose deletion the watch has shown. An answer to an earlier request may arrive later. */
  readonly deleted: ReadonlySet<string>
  /**
   * Uids of the last slots that an answer has ended. If two slots were requested, an earlier grant is recorded late.
   */
  readonly gone: readonly string[]
}

export type HeldSlot = {
  readonly slot: Slot
  readonly ownership: SlotOwnership
  /** The versions that granted it, or confirmed it last; absent if this agent did neither. */
  readonly admittedUnder?: SpecVersions | undefined
  readonly renewedAtMs: number
  readonly grantedAtMs: number
}

/** Far more than the slots of one request. */
const maxGone = 16

export const emptySlotBook: SlotBook = { held: new Map(), ended: new Set(), deleted: new Set(), gone: [] }

/**
 * The API server created it for this node. Another slot with its name is gone, and must not be preferred to the new
 * one.
 */
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

/** The slot is about to be written: a deletion that was shown before does not contradict the answer. */
export const writing = (book: SlotBook, uid: string): SlotBook =>
  book.deleted.has(uid) ? { ...book, deleted: without(book.deleted, uid) } : book

/** The slot was written, so this node holds it. That does not mean that new work may start under it. */
export function renewed(book: SlotBook, slot: Slot, nowMs: number): SlotBook {
  if (book.deleted.has(slot.uid)) return update(book, slot.uid, { slot })
  const ownership = ownershipOf(book, slot.uid) === 'releasing' ? 'releasing' : 'owned'
  return update(book, slot.uid, { slot, ownership, renewedAtMs: nowMs })
}

/**
 * The Skyhook was read after the grant and still admits it. Returns the same book if the slot is in doubt meanwhile.
 */
export function confirmed(book: SlotBook, slot: Slot, admittedUnder: SpecVersions, nowMs: number): SlotBook {
  const before = ownershipOf(book, slot.uid)
  if (before === 'releasing' || before === 'seen') return book
  return update(book, slot.uid, { slot, ownership: 'confirmed', admittedUnder, renewedAtMs: nowMs })
}

/** The slot is about to be deleted: decisions meanwhile must not continue work under it. */
export const releasing = (book: SlotBook, uid: string): SlotBook => update(book, uid, { ownership: 'releasing' })

const ownershipOf = (book: SlotBook, uid: string): SlotOwnership | undefined => book.held.get(uid)?.ownership

/** An answer showed that the slot is gone, or that another node holds it. */
export const ended = (book: SlotBook, uid: string): SlotBook => ({
  held: withoutKey(book.held, uid),
  ended: book.deleted.has(uid) ? book.ended : new Set(book.ended).add(uid),
  deleted: without(book.deleted, uid),
  gone: [...book.gone, uid].slice(-maxGone),
})

/** The watch shows the slot. An event that is older than the last answer changes nothing. */
export function seen(book: SlotBook, slot: Slot, nowMs: number): SlotBook {
  if (book.held.has(slot.uid) || book.ended.has(slot.uid)) return book
  return withHeld(book, { slot, ownership: 'seen', renewedAtMs: 0, grantedAtMs: nowMs })
}

/** The watch shows its deletion. Later events about this uid are valid again. */
export function deletionSeen(book: SlotBook, uid: string): SlotBook {
  if (book.ended.has(uid)) return { ...book, ended: without(book.ended, uid) }
  return doubted({ ...book, deleted: new Set(book.deleted).add(uid) }, uid)
}

/**
 * A LIST is complete, but may be older than the last answers: slots missing in it are in doubt, slots in it may be
 * true.
 */
export function listed(book: SlotBook, slots: readonly Slot[], nowMs: number): SlotBook {
  const uids = new Set(slots.map(({ uid }) => uid))
  const missing = [...book.held.keys()].filter((uid) => !uids.has(uid))
  let next: SlotBook = { ...book, ended: new Set() }
  for (const slot of slots) next = seen(next, slot, nowMs)
  for (const uid of missing) next = doubted(next, uid)
  return next
}

/** The slot may be gone: the next write shows it. */
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
