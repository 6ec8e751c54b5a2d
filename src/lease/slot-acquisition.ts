/** The requests for a slot: a LIST that admits, then a CREATE; and the same question again before the first step. */
import { isPastWork } from '../schemas/skyhook.ts'
import { type Admission, type Asking, admit, fullReason, ownSlotsIn, refusalOf, unreleasedReason } from './admission.ts'
import { controlPlaneScope } from './names.ts'
import { type AcquireOutcome, create, tryList } from './slot-creation.ts'
import { type Leases, listScope, listWithControlPlane, type ScopeListing } from './slot-reads.ts'
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
async function take(
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

const waiting = (reason: string, listing: ScopeListing): AcquireOutcome => ({
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

/** The control plane's slot: one node of the whole cluster at a time, whatever Skyhook works on it. */

/**
 * Asks for a Skyhook's slot for work that starts with taking a node of the control plane out of service: it needs the
 * control plane's slot first. Nothing is created unless one LIST admits both, so that no node holds the control plane's
 * slot without a slot of its Skyhook. `missing` names the slot that was not granted.
 */
export async function acquireWithControlPlane(
  leases: Leases,
  request: SlotRequest,
  signal?: AbortSignal,
): Promise<{
  readonly controlPlane: Slot | undefined
  readonly answer: AcquireOutcome
  readonly missing: 'control-plane' | 'skyhook' | undefined
}> {
  const guard: SlotRequest = { ...request, ...controlPlaneAsking, unansweredIndex: undefined }
  const listed = await tryList(() => listWithControlPlane(leases, request.scope, signal), signal)
  if ('error' in listed) return { controlPlane: undefined, answer: listed, missing: 'skyhook' }
  const { ofSkyhook, ofControlPlane } = listed
  const verdict = admit(ofSkyhook, request)
  if (verdict.verdict === 'wait')
    return { controlPlane: undefined, answer: waiting(verdict.reason, ofSkyhook), missing: 'skyhook' }
  const guarded = await take(leases, guard, ofControlPlane, signal)
  if (guarded.outcome !== 'held') return { controlPlane: undefined, answer: guarded, missing: 'control-plane' }
  const answer = await take(leases, request, ofSkyhook, signal)
  return { controlPlane: guarded.slot, answer, missing: answer.outcome === 'held' ? undefined : 'skyhook' }
}

/** How a node asks for the control plane's slot. */
export const controlPlaneAsking = {
  scope: controlPlaneScope,
  admissionFrom: (): Admission => ({ limit: 1 }),
} as const
