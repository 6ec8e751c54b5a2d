/**
 * The requests of the slot protocol. None of them waits or repeats in the background: each returns what became known,
 * and the loop decides. None reads a cache: an admission on old data would break the budget.
 *
 * Time frees nothing here. A slot ends because its node deletes it, because the Node object is gone, or because a
 * person deletes it.
 */
import { isAlreadyExists, isConflict, isInvalid, isNotFound, isTransient, isUnknownOutcome } from '../kube/errors.ts'
import { messageOf } from '../schemas/json.ts'
import { isPastWork } from '../schemas/skyhook.ts'
import { admit, type Asking, fullReason, ownSlotsIn, refusalOf, unreleasedReason } from './admission.ts'
import { leasesPathOf, listScope, observeSlot, type Leases, type ScopeListing } from './slot-reads.ts'
import {
  isHeldBy,
  newLease,
  readSlot,
  renewedLease,
  type Lease,
  type NodeIdentity,
  type Slot,
  type SlotProgress,
  type SlotTarget,
} from './slot.ts'

export type SlotRequest = Asking & { readonly progress: SlotProgress }

type Held = { readonly outcome: 'held'; readonly slot: Slot }
type Lost = { readonly outcome: 'lost'; readonly reason: string }
type Unknown = {
  readonly outcome: 'unknown'
  readonly error: unknown
  /** Of a CREATE that may still be carried out: the next request is to name it. */
  readonly unansweredIndex?: number
}

/** Not now; `reason` is for people, the same for all who wait, and does not change with their number. */
type Waiting = {
  readonly outcome: 'waiting'
  readonly reason: string
  /** Absent where no LIST was needed to know. */
  readonly listing?: ScopeListing
}

export type AcquireOutcome =
  | (Held & { readonly isNew: boolean })
  | Waiting
  /** Another node was faster: ask again after a pause, not at once. */
  | (Lost & {
      readonly lease: string
      /** What the request was based on, and how many indices were free besides; absent where it was on nothing. */
      readonly listing?: ScopeListing
      readonly othersFree?: number
    })
  /** Whether a slot was created is not known; the next call finds it if it was. */
  | Unknown

export type RenewOutcome = Held | Lost | Unknown

export type ConfirmOutcome =
  | Held
  /** The slot is still ours, but the current limit would not grant it: give it back, as no work has started. */
  | { readonly outcome: 'yield'; readonly slot: Slot; readonly reason: string }
  | Lost
  | Unknown

export type ReleaseOutcome =
  | { readonly outcome: 'released' }
  /** Somebody else has the name now: nothing was deleted. */
  | Lost
  | Unknown

/** Conflicts with writers that are not ours (a person's annotation) are few: more than this is a fight. */
const maxConflicts = 5

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
      const { target, epoch, othersFree } = verdict
      const isRepeated = 'index' in target && target.index === unansweredIndex
      const creation = { scope, node, progress: { ...progress, epoch } }
      const answer = await create(leases, creation, { target, isRepeated }, signal)
      return answer.outcome === 'lost' ? { ...answer, listing, othersFree } : answer
    }
  }
}

export const waiting = (reason: string, listing: ScopeListing): AcquireOutcome => ({
  outcome: 'waiting',
  reason,
  listing,
})

/**
 * Takes a slot without asking for room: a node that is already disrupted takes capacity whether it counts or not. Safe
 * to repeat; a slot of the scope that is already ours is returned instead.
 */
export async function createRecoverySlot(
  leases: Leases,
  request: Creation,
  signal?: AbortSignal,
): Promise<AcquireOutcome> {
  return await create(leases, request, { target: { kind: 'recovery' }, isRepeated: false }, signal)
}

/** Right before the first step: is the slot still ours, and would it still be granted? After that nothing yields. */
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

/** Reports progress, and proves that the slot is still ours. Only `held` allows the next step; repeat `unknown`. */
export async function renew(
  leases: Leases,
  slot: Slot,
  node: NodeIdentity,
  progress: SlotProgress,
  signal?: AbortSignal,
): Promise<RenewOutcome> {
  let current = slot
  for (let attempt = 0; ; attempt++) {
    try {
      const body = renewedLease(current, node, progress, leases.clock.wallMs())
      const lease = await leases.transport.json<Lease>('PUT', `${leasesPathOf(leases)}/${slot.name}`, { body, signal })
      return { outcome: 'held', slot: readSlot(lease) ?? current }
    } catch (error) {
      signal?.throwIfAborted()
      if ((!isConflict(error) && !isNotFound(error)) || attempt >= maxConflicts) return { outcome: 'unknown', error }
    }
    const observed = await observeSlot(leases, slot, node, signal)
    if (observed.is === 'unknown') return { outcome: 'unknown', error: observed.error }
    if (observed.is !== 'ours') return { outcome: 'lost', reason: observed.reason }
    current = observed.slot // somebody else wrote into it, or the answer to a PUT of ours was lost
  }
}

/** Gives the slot back, exactly this one. Safe to repeat, which is up to the caller after `unknown`. */
export async function release(
  leases: Leases,
  slot: Slot,
  node: NodeIdentity,
  signal?: AbortSignal,
): Promise<ReleaseOutcome> {
  let current = slot
  for (let attempt = 0; ; attempt++) {
    let failure: unknown
    try {
      const preconditions = { uid: current.uid, resourceVersion: current.resourceVersion }
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
      await leases.transport.json('DELETE', `${leasesPathOf(leases)}/${slot.name}`, { body, signal })
      return { outcome: 'released' }
    } catch (error) {
      signal?.throwIfAborted()
      if (isNotFound(error)) return { outcome: 'released' }
      if ((!isConflict(error) && !isUnknownOutcome(error)) || attempt >= maxConflicts)
        return { outcome: 'unknown', error }
      failure = error
    }
    const observed = await observeSlot(leases, slot, node, signal)
    if (observed.is === 'unknown') return { outcome: 'unknown', error: failure }
    if (observed.is === 'gone' || (observed.is === 'foreign' && isUnknownOutcome(failure)))
      return { outcome: 'released' }
    if (observed.is === 'foreign') return { outcome: 'lost', reason: observed.reason }
    // not repeated here: each attempt may last until its timeout, and the caller has to say why the slot is still held
    if (isUnknownOutcome(failure)) return { outcome: 'unknown', error: failure }
    current = observed.slot
  }
}

type Creation = Pick<SlotRequest, 'scope' | 'node' | 'progress'>
/** `isRepeated`: an earlier CREATE of this very name was not answered. */
type CreationTarget = { readonly target: SlotTarget; readonly isRepeated: boolean }

async function create(
  leases: Leases,
  request: Creation,
  creation: CreationTarget,
  signal: AbortSignal | undefined,
  isSecond = false,
): Promise<AcquireOutcome> {
  const { scope, node, progress } = request
  const { target, isRepeated } = creation
  const body = newLease(scope, target, node, progress, leases.clock.wallMs())
  let failure: unknown
  try {
    const slot = readSlot(await leases.transport.json<Lease>('POST', leasesPathOf(leases), { body, signal }))
    if (slot !== undefined) return { outcome: 'held', slot, isNew: true }
    failure = new Error('the API server answered the creation of a slot with another object')
  } catch (error) {
    signal?.throwIfAborted()
    if (isAlreadyExists(error) && 'index' in target && !isRepeated)
      return { outcome: 'lost', reason: `another node took ${body.metadata.name}`, lease: body.metadata.name }
    if (isInvalid(error) && !isSecond) return await createUnlessHeld(leases, request, creation, signal)
    if (!isAlreadyExists(error) && !isTransient(error))
      return { outcome: 'waiting', reason: `the API server rejected the slot: ${messageOf(error)}` }
    failure = error
  }
  const observed = await observeSlot(leases, { name: body.metadata.name }, node, signal)
  if (observed.is === 'ours') return { outcome: 'held', slot: observed.slot, isNew: true }
  if (observed.is === 'former' && !isSecond) {
    const released = await release(leases, observed.slot, node, signal)
    return released.outcome === 'unknown' ? released : await create(leases, request, creation, signal, true)
  }
  if (isAlreadyExists(failure) && observed.is !== 'unknown')
    return { outcome: 'lost', reason: observed.reason, lease: body.metadata.name }
  return { outcome: 'unknown', error: failure, ...('index' in target && { unansweredIndex: target.index }) }
}

/**
 * After a refusal as by the policy of one slot per holder. Either a CREATE given up as unanswered has come through, or
 * the API server has not yet heard of a release: its policies read a cache that is some milliseconds old.
 */
async function createUnlessHeld(
  leases: Leases,
  request: Creation,
  creation: CreationTarget,
  signal: AbortSignal | undefined,
): Promise<AcquireOutcome> {
  const listing = await tryList(() => listScope(leases, request.scope, signal), signal)
  if ('error' in listing) return listing
  return (
    (await ownSlotAlone(leases, listing, request, signal)) ?? (await create(leases, request, creation, signal, true))
  )
}

/** Answers `unknown` where the LIST fails; throws only after an abort. */
export async function tryList<T extends object>(
  list: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | Unknown> {
  try {
    return await list()
  } catch (error) {
    signal?.throwIfAborted()
    return { outcome: 'unknown', error }
  }
}

/** The slot that we hold in the scope already, alone. */
async function ownSlotAlone(
  leases: Leases,
  { slots }: ScopeListing,
  { scope, node }: Creation,
  signal: AbortSignal | undefined,
): Promise<(Held & { readonly isNew: false }) | Unknown | undefined> {
  const [slot, ...duplicates] = ownSlotsIn(slots, scope, node)
  if (slot === undefined) return undefined
  return (await releaseDuplicates(leases, duplicates, node, signal)) ?? { outcome: 'held', slot, isNew: false }
}

/** A CREATE without an answer may come through late, beside the slot taken meanwhile: it would count a second time. */
async function releaseDuplicates(
  leases: Leases,
  duplicates: readonly Slot[],
  node: NodeIdentity,
  signal: AbortSignal | undefined,
): Promise<Unknown | undefined> {
  for (const duplicate of duplicates) {
    const released = await release(leases, duplicate, node, signal)
    if (released.outcome === 'unknown') return released
  }
  return undefined
}
