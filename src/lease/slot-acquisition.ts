/** The requests for a slot: a LIST that admits, then a CREATE; and the same question again before the first step. */
import { isPastWork } from '../schemas/skyhook.ts'
import { admit, type Asking, fullReason, ownSlotsIn, refusalOf, unreleasedReason } from './admission.ts'
import { type AcquireOutcome, create, tryList } from './slot-creation.ts'
import { listScope, type Leases, type ScopeListing } from './slot-reads.ts'
import { isHeldBy, type Slot, type SlotProgress } from './slot.ts'
import { type Held, type Lost, releaseDuplicates, type Unknown } from './slots.ts'

export type SlotRequest = Asking & { readonly progress: SlotProgress }

export type ConfirmOutcome =
  | Held
  /** The slot is still ours, but the current limit would not grant it: give it back, as no work has started. */
  | { readonly outcome: 'yield'; readonly slot: Slot; readonly reason: string }
  | Lost
  | Unknown

/**
 * Asks for one slot of the scope. Safe to repeat: a slot that is already ours is returned as it is. The Node's uid must
 * be the current one, or garbage collection takes the slot away again.
 */
export async function acquire(leases: Leases, request: SlotRequest, signal?: AbortSignal): Promise<AcquireOutcome> {
  const { limit } = request.admissionFrom({ slots: [], ledgers: [], resourceVersion: '' })
  if (limit === 0) return { outcome: 'waiting', reason: fullReason(0, request.scope) }
  if (limit === 'unlimited') {
    const answer = await create(leases, request, { target: { kind: 'unlimited' }, isRepeated: false }, signal)
    const isUsed = answer.outcome === 'held' && isPastWork(answer.slot.phase)
    return isUsed ? { outcome: 'waiting', reason: unreleasedReason } : answer
  }
  const listing = await tryList(() => listScope(leases, request.scope, signal), signal)
  return 'error' in listing ? listing : await take(leases, request, listing, signal)
}

/** Creates what the listing admits. Safe to repeat with a new listing. */
export async function take(
  leases: Leases,
  request: SlotRequest,
  listing: ScopeListing,
  signal: AbortSignal | undefined,
): Promise<AcquireOutcome> {
  const { scope, node, progress, unansweredIndex } = request
  const verdict = admit(listing, request)
  switch (verdict.verdict) {
    case 'held': {
      const { slot, duplicates } = verdict
      return (await releaseDuplicates(leases, duplicates, node, signal)) ?? { outcome: 'held', slot, isNew: false }
    }
    case 'wait':
      return waiting(verdict.reason, listing)
    case 'create': {
      const { target, epoch } = verdict
      const isRepeated = 'index' in target && target.index === unansweredIndex
      const creation = { scope, node, progress: { ...progress, epoch } }
      const answer = await create(leases, creation, { target, isRepeated }, signal)
      return answer.outcome === 'lost' ? { ...answer, listing } : answer
    }
  }
}

export const waiting = (reason: string, listing: ScopeListing): AcquireOutcome => ({
  outcome: 'waiting',
  reason,
  listing,
})

/**
 * Right before the first step: is the slot still ours, and would it still be granted? After that a node never yields.
 */
export async function confirm(
  leases: Leases,
  slot: Slot,
  request: SlotRequest,
  signal?: AbortSignal,
): Promise<ConfirmOutcome> {
  const { scope, node } = request
  const listing = await tryList(() => listScope(leases, scope, signal), signal)
  if ('error' in listing) return listing
  const own = listing.slots.find(({ uid }) => uid === slot.uid)
  if (own === undefined || !isHeldBy(own, node)) return { outcome: 'lost', reason: `Lease ${slot.name} is gone` }
  const duplicates = ownSlotsIn(listing.slots, scope, node).filter(({ uid }) => uid !== own.uid)
  const releaseError = await releaseDuplicates(leases, duplicates, node, signal)
  if (releaseError !== undefined) return releaseError

  const reason = refusalOf(listing, { own, duplicates }, request)
  return reason === undefined ? { outcome: 'held', slot: own } : { outcome: 'yield', slot: own, reason }
}
