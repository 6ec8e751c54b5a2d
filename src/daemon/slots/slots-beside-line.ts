import type { Limit } from '../../lease/rule.ts'
import type { ScopeListing } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import type { Queue } from '../../lease/waiting.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { bootstrapLimitOf } from '../../lease/budget/budget.ts'

/** Slots that the interruption budget does not count. Few nodes wait for them, and none of them in line. */
export type SlotsBesideLine = {
  readonly limitOf: (view: SkyhookView, ledgers: readonly Lease[]) => Limit
  readonly others: Queue
}

export const controlPlaneSlots: SlotsBesideLine = { limitOf: () => 1, others: { matched: 1, waiters: 1 } }

export const joiningSlots = (others: Queue): SlotsBesideLine => ({ limitOf: bootstrapLimitOf, others })

/** How many there are for this spec; 1 while that is unknown: a request finds out. */
export function countBesideLine(
  { limitOf }: SlotsBesideLine,
  view: SkyhookView,
  listing: ScopeListing | undefined,
): Exclude<Limit, object> {
  const limit = limitOf(view, listing?.ledgers ?? [])
  return typeof limit === 'object' ? 1 : limit
}
