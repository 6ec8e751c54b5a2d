/**
 * The requests of the slot protocol. None of them waits or repeats in the background: each returns what became known, and the loop
 * decides. A cache is never read: an admission on old news would break the budget.
 *
 * Time frees nothing here. A slot ends because its node deletes it, because the Node object is gone, or because a person deletes it.
 */
import { isAlreadyExists, isConflict, isNotFound, isTransient, isUnknownOutcome } from '../kube/errors.ts'
import type { Scope } from './names.ts'
import { admissible, isStillAdmissible, pick, type Limit } from './rule.ts'
import { collectionOf, listScope, look, type Leases, type ListedScope } from './slot-reads.ts'
import { heldIndices, isHeldBy, newLease, readSlot, renewedLease, type Lease, type NodeIdentity, type Progress, type Slot } from './slot.ts'

/** What the ledger of the same LIST means for the asking node. */
export type Terms = { readonly limit: Limit; readonly epoch?: number | undefined }

export type SlotRequest = {
  readonly scope: Scope
  readonly node: NodeIdentity
  readonly progress: Progress
  readonly termsFrom: (ledgers: readonly Lease[]) => Terms
}

export type Acquired =
  | { readonly outcome: 'held'; readonly slot: Slot; readonly isNew: boolean }
  /** Not now; `reason` is for people. */
  | { readonly outcome: 'waiting'; readonly reason: string; readonly holders: readonly string[] }
  /** Another node was faster: ask again after a pause, not at once. */
  | { readonly outcome: 'lost'; readonly reason: string }
  /** Whether a slot was created is not known; the next call finds it if it was. */
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type Renewed =
  | { readonly outcome: 'held'; readonly slot: Slot }
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type Confirmed =
  | { readonly outcome: 'held'; readonly slot: Slot }
  /** The slot is still ours, but under the limit of now it would not be granted: give it back, as nothing has begun. */
  | { readonly outcome: 'yield'; readonly slot: Slot; readonly reason: string }
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

export type Released =
  | { readonly outcome: 'released' }
  /** The name is somebody else's now: nothing was deleted. */
  | { readonly outcome: 'lost'; readonly reason: string }
  | { readonly outcome: 'unknown'; readonly error: unknown }

/** Conflicts with writers that are not ours (a person's annotation) are few: more than this is a fight and worth telling. */
const MAX_CONFLICTS = 5

const nowOf = ({ nowMs = Date.now }: Leases): number => nowMs()

/**
 * Asks for one slot of the scope. Safe to repeat: a slot that is already ours is returned as it is. The Node's uid must be the one of
 * now, or garbage collection takes the slot away again.
 */
export async function acquire(leases: Leases, request: SlotRequest, signal?: AbortSignal): Promise<Acquired> {
  const { scope, node, progress, termsFrom } = request
  let listed: ListedScope
  try {
    listed = await listScope(leases, scope, signal)
  } catch (error) {
    signal?.throwIfAborted()
    return { outcome: 'unknown', error }
  }
  const [mine, ...twins] = ownSlots(listed.slots, scope, node)
  if (mine !== undefined) return (await releaseTwins(leases, twins, node, signal)) ?? { outcome: 'held', slot: mine, isNew: false }

  const { limit, epoch } = termsFrom(listed.ledgers)
  if (typeof limit === 'object') return { outcome: 'waiting', reason: `budget unknown: ${limit.unknown}`, holders: holdersOf(listed.slots) }
  if (limit === 'unlimited') return await create(leases, { scope, node, progress: { ...progress, epoch } }, { kind: 'unlimited' }, signal)
  const index = pick(admissible(heldIndices(listed.slots, scope), limit), node.uid)
  if (index === undefined) {
    const reason = limit === 0 ? 'the budget is 0: no node may start' : `${listed.slots.length} of ${limit} slots are held`
    return { outcome: 'waiting', reason, holders: holdersOf(listed.slots) }
  }
  return await create(leases, { scope, node, progress: { ...progress, epoch } }, { index }, signal)
}

/** Takes a slot without asking for room: for a node that is already disrupted, whose capacity is gone whether we count it or not. */
export async function adoptRecovery(leases: Leases, request: Omit<SlotRequest, 'termsFrom'>, signal?: AbortSignal): Promise<Acquired> {
  return await create(leases, request, { kind: 'recovery' }, signal)
}

/** Right before the first step: is the slot still ours, and would it still be granted? From then on a holder only goes forward. */
export async function confirm(leases: Leases, slot: Slot, request: SlotRequest, signal?: AbortSignal): Promise<Confirmed> {
  const { scope, node, termsFrom } = request
  let listed: ListedScope
  try {
    listed = await listScope(leases, scope, signal)
  } catch (error) {
    signal?.throwIfAborted()
    return { outcome: 'unknown', error }
  }
  const mine = listed.slots.find(({ uid }) => uid === slot.uid)
  if (mine === undefined || !isHeldBy(mine, node)) return { outcome: 'lost', reason: `Lease ${slot.name} is gone` }
  const twins = ownSlots(listed.slots, scope, node).filter(({ uid }) => uid !== mine.uid)
  const trouble = await releaseTwins(leases, twins, node, signal)
  if (trouble !== undefined) return trouble
  const { limit, epoch } = termsFrom(listed.ledgers)
  if (typeof limit === 'object') return { outcome: 'yield', slot: mine, reason: `budget unknown: ${limit.unknown}` }
  if (epoch !== undefined && epoch !== mine.epoch) return { outcome: 'yield', slot: mine, reason: `batch ${mine.epoch} is over` }
  if (limit === 'unlimited') return { outcome: 'held', slot: mine }
  const others = heldIndices(
    listed.slots.filter((other) => other !== mine && !twins.includes(other)),
    scope,
  )
  if (isStillAdmissible(mine.index, others, limit)) return { outcome: 'held', slot: mine }
  return { outcome: 'yield', slot: mine, reason: `the budget fell to ${limit} while ${others.length + 1} slots were held` }
}

/** Reports progress, and proves that the slot is still ours. Only `held` allows what comes next; `unknown` may be repeated. */
export async function renew(leases: Leases, slot: Slot, node: NodeIdentity, progress: Progress, signal?: AbortSignal): Promise<Renewed> {
  let current = slot
  for (let tries = 0; ; tries++) {
    try {
      const body = renewedLease(current, node, progress, nowOf(leases))
      const lease = await leases.transport.json<Lease>('PUT', `${collectionOf(leases)}/${slot.name}`, { body, signal })
      return { outcome: 'held', slot: readSlot(lease) ?? current }
    } catch (error) {
      signal?.throwIfAborted()
      if ((!isConflict(error) && !isNotFound(error)) || tries >= MAX_CONFLICTS) return { outcome: 'unknown', error }
    }
    const seen = await look(leases, slot, node, signal)
    if (seen.is === 'unknown') return { outcome: 'unknown', error: seen.error }
    if (seen.is !== 'ours') return { outcome: 'lost', reason: seen.reason }
    current = seen.slot // somebody else wrote into it, or a PUT of ours was answered into the void
  }
}

/** Gives the slot back, exactly this one. Safe to repeat. */
export async function release(leases: Leases, slot: Slot, node: NodeIdentity, signal?: AbortSignal): Promise<Released> {
  let current = slot
  for (let tries = 0; ; tries++) {
    let failure: unknown
    try {
      const preconditions = { uid: current.uid, resourceVersion: current.resourceVersion }
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
      await leases.transport.json('DELETE', `${collectionOf(leases)}/${slot.name}`, { body, signal })
      return { outcome: 'released' }
    } catch (error) {
      signal?.throwIfAborted()
      if (isNotFound(error)) return { outcome: 'released' }
      if ((!isConflict(error) && !isUnknownOutcome(error)) || tries >= MAX_CONFLICTS) return { outcome: 'unknown', error }
      failure = error
    }
    const seen = await look(leases, slot, node, signal)
    if (seen.is === 'unknown') return { outcome: 'unknown', error: failure }
    if (seen.is === 'gone' || (seen.is === 'foreign' && isUnknownOutcome(failure))) return { outcome: 'released' }
    if (seen.is === 'foreign') return { outcome: 'lost', reason: seen.reason }
    current = seen.slot
  }
}

async function create(
  leases: Leases,
  { scope, node, progress }: Omit<SlotRequest, 'termsFrom'>,
  which: { readonly index: number } | { readonly kind: 'unlimited' | 'recovery' },
  signal: AbortSignal | undefined,
): Promise<Acquired> {
  const body = newLease(scope, which, node, progress, nowOf(leases))
  let failure: unknown
  try {
    const slot = readSlot(await leases.transport.json<Lease>('POST', collectionOf(leases), { body, signal }))
    if (slot !== undefined) return { outcome: 'held', slot, isNew: true }
    failure = new Error('the server answered the CREATE of a slot with something else')
  } catch (error) {
    signal?.throwIfAborted()
    if (isAlreadyExists(error) && 'index' in which) return { outcome: 'lost', reason: `another node took ${body.metadata.name}` }
    if (!isAlreadyExists(error) && !isTransient(error)) {
      return {
        outcome: 'waiting',
        reason: `the API server refuses the slot: ${error instanceof Error ? error.message : String(error)}`,
        holders: [],
      }
    }
    failure = error
  }
  const seen = await look(leases, { name: body.metadata.name }, node, signal)
  if (seen.is === 'ours') return { outcome: 'held', slot: seen.slot, isNew: true }
  if (isAlreadyExists(failure) && seen.is !== 'unknown') return { outcome: 'lost', reason: seen.reason }
  return { outcome: 'unknown', error: failure }
}

/** A CREATE that was given up as unanswered may come through late, beside the slot taken meanwhile: it would count a second time. */
async function releaseTwins(
  leases: Leases,
  twins: readonly Slot[],
  node: NodeIdentity,
  signal: AbortSignal | undefined,
): Promise<{ outcome: 'unknown'; error: unknown } | undefined> {
  for (const twin of twins) {
    const released = await release(leases, twin, node, signal)
    if (released.outcome === 'unknown') return released
  }
  return undefined
}

/** Our slots of the scope, the one to keep first. */
function ownSlots(slots: readonly Slot[], scope: Scope, node: NodeIdentity): Slot[] {
  return slots.filter((slot) => slot.scope === scope.hash && isHeldBy(slot, node)).toSorted((a, b) => a.index - b.index || 0)
}

const holdersOf = (slots: readonly Slot[]): string[] => [...new Set(slots.map(({ holder }) => holder))].toSorted()
