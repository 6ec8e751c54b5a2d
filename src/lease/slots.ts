/**
 * The requests of the slot protocol. None of them waits or repeats in the background: each returns what became known,
 * and the loop decides. A cache is never read: an admission on old news would break the budget.
 *
 * Time frees nothing here. A slot ends because its node deletes it, because the Node object is gone, or because a
 * person deletes it.
 */
import { isAlreadyExists, isConflict, isNotFound, isTransient, isUnknownOutcome } from '../kube/errors.ts'
import { messageOf } from '../schemas/json.ts'
import type { Scope } from './names.ts'
import { admissibleIndices, isStillAdmissible, pickIndex, type Limit } from './rule.ts'
import { leasesPathOf, listScope, observeSlot, type Leases, type ScopeListing } from './slot-reads.ts'
import {
  heldIndices,
  isHeldBy,
  newLease,
  readSlot,
  renewedLease,
  type Lease,
  type NodeIdentity,
  type SlotProgress,
  type Slot,
} from './slot.ts'

/** What the ledger of the same LIST means for the asking node. */
export type Admission = { readonly limit: Limit; readonly epoch?: number | undefined }

export type SlotRequest = {
  readonly scope: Scope
  readonly node: NodeIdentity
  readonly progress: SlotProgress
  readonly admissionFrom: (ledgers: readonly Lease[]) => Admission
}

export type AcquireOutcome =
  | { readonly outcome: 'held'; readonly slot: Slot; readonly isNew: boolean }
  /** Not now; `reason` is for people. */
  | { readonly outcome: 'waiting'; readonly reason: string; readonly holders: readonly string[] }
  /** Another node was faster: ask again after a pause, not at once. */
  | { readonly outcome: 'lost'; readonly reason: string }
  /** Whether a slot was created is not known; the next call finds it if it was. */
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type RenewOutcome =
  | { readonly outcome: 'held'; readonly slot: Slot }
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type ConfirmOutcome =
  | { readonly outcome: 'held'; readonly slot: Slot }
  /** The slot is still ours, but under the limit of now it would not be granted: give it back, as nothing has begun. */
  | { readonly outcome: 'yield'; readonly slot: Slot; readonly reason: string }
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type ReleaseOutcome =
  | { readonly outcome: 'released' }
  /** The name is somebody else's now: nothing was deleted. */
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

/**
 * Conflicts with writers that are not ours (a person's annotation) are few: more than this is a fight and worth
 * telling.
 */
const maxConflicts = 5

/**
 * Asks for one slot of the scope. Safe to repeat: a slot that is already ours is returned as it is. The Node's uid must
 * be the one of now, or garbage collection takes the slot away again.
 */
export async function acquire(leases: Leases, request: SlotRequest, signal?: AbortSignal): Promise<AcquireOutcome> {
  const { scope, node, progress, admissionFrom } = request
  let listing: ScopeListing
  try {
    listing = await listScope(leases, scope, signal)
  } catch (error) {
    signal?.throwIfAborted()
    return { outcome: 'unknown', error }
  }
  const [ownSlot, ...duplicates] = ownSlots(listing.slots, scope, node)
  if (ownSlot !== undefined)
    return (
      (await releaseDuplicates(leases, duplicates, node, signal)) ?? { outcome: 'held', slot: ownSlot, isNew: false }
    )

  const { limit, epoch } = admissionFrom(listing.ledgers)
  if (typeof limit === 'object')
    return { outcome: 'waiting', reason: `budget unknown: ${limit.unknown}`, holders: holdersOf(listing.slots) }
  if (limit === 'unlimited')
    return await create(leases, { scope, node, progress: { ...progress, epoch } }, { kind: 'unlimited' }, signal)
  const index = pickIndex(admissibleIndices(heldIndices(listing.slots, scope), limit), node.uid)
  if (index === undefined) {
    const reason = limit === 0 ? 'the budget is 0' : `${listing.slots.length} of ${limit} slots are held`
    return { outcome: 'waiting', reason, holders: holdersOf(listing.slots) }
  }
  return await create(leases, { scope, node, progress: { ...progress, epoch } }, { index }, signal)
}

/**
 * Takes a slot without asking for room: for a node that is already disrupted, whose capacity is gone whether we count
 * it or not.
 */
export async function createRecoverySlot(
  leases: Leases,
  request: Omit<SlotRequest, 'admissionFrom'>,
  signal?: AbortSignal,
): Promise<AcquireOutcome> {
  return await create(leases, request, { kind: 'recovery' }, signal)
}

/**
 * Right before the first step: is the slot still ours, and would it still be granted? From then on a holder only goes
 * forward.
 */
export async function confirm(
  leases: Leases,
  slot: Slot,
  request: SlotRequest,
  signal?: AbortSignal,
): Promise<ConfirmOutcome> {
  const { scope, node, admissionFrom } = request
  let listing: ScopeListing
  try {
    listing = await listScope(leases, scope, signal)
  } catch (error) {
    signal?.throwIfAborted()
    return { outcome: 'unknown', error }
  }
  const ownSlot = listing.slots.find(({ uid }) => uid === slot.uid)
  if (ownSlot === undefined || !isHeldBy(ownSlot, node))
    return { outcome: 'lost', reason: `Lease ${slot.name} is gone` }
  const duplicates = ownSlots(listing.slots, scope, node).filter(({ uid }) => uid !== ownSlot.uid)
  const releaseError = await releaseDuplicates(leases, duplicates, node, signal)
  if (releaseError !== undefined) return releaseError
  const { limit, epoch } = admissionFrom(listing.ledgers)
  if (typeof limit === 'object') return { outcome: 'yield', slot: ownSlot, reason: `budget unknown: ${limit.unknown}` }
  if (epoch !== undefined && epoch !== ownSlot.epoch)
    return { outcome: 'yield', slot: ownSlot, reason: `batch ${ownSlot.epoch} is over` }
  if (limit === 'unlimited') return { outcome: 'held', slot: ownSlot }
  const others = heldIndices(
    listing.slots.filter((other) => other !== ownSlot && !duplicates.includes(other)),
    scope,
  )
  if (isStillAdmissible(ownSlot.index, others, limit)) return { outcome: 'held', slot: ownSlot }
  return {
    outcome: 'yield',
    slot: ownSlot,
    reason: `the budget fell to ${limit} while ${others.length + 1} slots were held`,
  }
}

/**
 * Reports progress, and proves that the slot is still ours. Only `held` allows what comes next; `unknown` may be
 * repeated.
 */
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
    current = observed.slot // somebody else wrote into it, or a PUT of ours was answered into the void
  }
}

/** Gives the slot back, exactly this one. Safe to repeat. */
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
    current = observed.slot
  }
}

async function create(
  leases: Leases,
  { scope, node, progress }: Omit<SlotRequest, 'admissionFrom'>,
  target: { readonly index: number } | { readonly kind: 'unlimited' | 'recovery' },
  signal: AbortSignal | undefined,
): Promise<AcquireOutcome> {
  const body = newLease(scope, target, node, progress, leases.clock.wallMs())
  let failure: unknown
  try {
    const slot = readSlot(await leases.transport.json<Lease>('POST', leasesPathOf(leases), { body, signal }))
    if (slot !== undefined) return { outcome: 'held', slot, isNew: true }
    failure = new Error('the API server answered the creation of a slot with another object')
  } catch (error) {
    signal?.throwIfAborted()
    if (isAlreadyExists(error) && 'index' in target)
      return { outcome: 'lost', reason: `another node took ${body.metadata.name}` }
    if (!isAlreadyExists(error) && !isTransient(error)) {
      return {
        outcome: 'waiting',
        reason: `the API server rejected the slot: ${messageOf(error)}`,
        holders: [],
      }
    }
    failure = error
  }
  const observed = await observeSlot(leases, { name: body.metadata.name }, node, signal)
  if (observed.is === 'ours') return { outcome: 'held', slot: observed.slot, isNew: true }
  if (isAlreadyExists(failure) && observed.is !== 'unknown') return { outcome: 'lost', reason: observed.reason }
  return { outcome: 'unknown', error: failure }
}

/**
 * A CREATE that was given up as unanswered may come through late, beside the slot taken meanwhile: it would count a
 * second time.
 */
async function releaseDuplicates(
  leases: Leases,
  duplicates: readonly Slot[],
  node: NodeIdentity,
  signal: AbortSignal | undefined,
): Promise<{ outcome: 'unknown'; error: unknown } | undefined> {
  for (const duplicate of duplicates) {
    const released = await release(leases, duplicate, node, signal)
    if (released.outcome === 'unknown') return released
  }
  return undefined
}

/** Our slots of the scope, the one to keep first. */
function ownSlots(slots: readonly Slot[], scope: Scope, node: NodeIdentity): Slot[] {
  return slots
    .filter((slot) => slot.scope === scope.hash && isHeldBy(slot, node))
    .toSorted((a, b) => a.index - b.index || 0)
}

const holdersOf = (slots: readonly Slot[]): string[] => [...new Set(slots.map(({ holder }) => holder))].toSorted()
