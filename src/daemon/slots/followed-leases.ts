import type { Limit } from '../../lease/rule.ts'
import type { Leases, ScopeListing } from '../../lease/slot-reads.ts'
import { type Lease, othersFreeAt, type Slot } from '../../lease/slot.ts'
import type { Random } from '../../schemas/clock.ts'
import { type LeaseSeen, type LeaseWatch, unseen, watchLease } from './lease-watch.ts'

/** The Leases that one wait watches by name: one held slot and, where the budget depends on it, the ledger. */
export type FollowedLeases = {
  /** The slot that is followed. */
  slotName(): string | undefined
  /** Instead of the one before. `slotsNow`: how many slots there are in its scope. */
  followSlot(name: string, seen: LeaseSeen, slotsNow: () => Limit): void
  /**
   * One of the held slots, also one without an index. At first the one of the node's place, so that each is followed by
   * about as many nodes. After a look that found no free slot, any of them: the followed one is held for long, and else
   * all who are left follow such slots, and nobody those that are passed on.
   */
  followOneOf(listing: ScopeListing, place: number, isLook: boolean, slotsNow: () => Limit): void
  followLedger(seen: LeaseSeen): void
  unfollowLedger(): void
  unfollow(): void
}

export type FollowedLeasesOptions = {
  readonly leases: Leases
  /** Its name. */
  readonly ledger: string
  readonly random: Random
  /** `wasHeld`: and not released since. `othersFree`: so many slots were free besides when it was granted. */
  readonly onHeld: (wasHeld: boolean, othersFree: number) => void
  readonly onReleased: (slots: Limit) => void
  /** Undefined: it is gone. */
  readonly onLedger: (ledger: Lease | undefined) => void
  readonly signal: AbortSignal
}

export function createFollowedLeases(options: FollowedLeasesOptions): FollowedLeases {
  const { leases, random, signal } = options
  let slotWatch: LeaseWatch | undefined
  let ledgerWatch: LeaseWatch | undefined

  function followSlot(name: string, seen: LeaseSeen, slotsNow: () => Limit): void {
    if (slotWatch?.name === name) return
    slotWatch?.close()
    let isHeld = seen === unseen ? undefined : seen.lease !== undefined
    const onChange = (lease: Lease | undefined): void => {
      const wasHeld = isHeld ?? true
      isHeld = lease !== undefined
      if (lease !== undefined) options.onHeld(wasHeld, othersFreeAt(lease))
      else options.onReleased(slotsNow())
    }
    slotWatch = watchLease(leases, name, seen, { random, onChange, signal })
  }

  function unfollowLedger(): void {
    ledgerWatch?.close()
    ledgerWatch = undefined
  }

  return {
    slotName: () => slotWatch?.name,
    followSlot,

    followOneOf({ slots, resourceVersion }, place, isLook, slotsNow) {
      const isStillHeld = slots.some(({ name }) => name === slotWatch?.name)
      if (isStillHeld && !isLook) return
      const held = slots.toSorted(byIndex)
      const target = held[isStillHeld ? Math.floor(random.number() * held.length) : place % held.length]
      if (target !== undefined) followSlot(target.name, { lease: target.lease, resourceVersion }, slotsNow)
    },

    followLedger(seen) {
      ledgerWatch ??= watchLease(leases, options.ledger, seen, { random, onChange: options.onLedger, signal })
    },

    unfollowLedger,

    unfollow() {
      unfollowLedger()
      slotWatch?.close()
      slotWatch = undefined
    },
  }
}

const byIndex = (a: Slot, b: Slot): number => a.index - b.index || (a.name < b.name ? -1 : 1)
