/** The CREATE of a slot, for a node that was admitted or needs no admission. */
import { isAlreadyExists, isInvalid, isTransient, isUnknownOutcome } from '../kube/errors.ts'
import { messageOf } from '../schemas/json.ts'
import { ownSlotsIn } from './admission.ts'
import type { Scope } from './names.ts'
import { leasesPathOf, listScope, observeSlot, type Leases, type ScopeListing } from './slot-reads.ts'
import { newLease, readSlot, type Lease, type NodeIdentity, type SlotProgress, type SlotTarget } from './slot.ts'
import { type Held, type Lost, release, releaseDuplicates, type Unknown } from './slots.ts'

/** Not now; `reason` is for people, the same for all waiting nodes, and does not change with their number. */
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
      /** What the request was based on, if anything. */
      readonly listing?: ScopeListing
    })
  /** Not by other nodes: by the API server itself (a policy, a quota, missing permissions). */
  | { readonly outcome: 'rejected'; readonly reason: string }
  /** Whether a slot was created is not known; the next call finds it if it was. */
  | Unknown

type Creation = {
  readonly scope: Scope
  readonly node: NodeIdentity
  readonly progress: SlotProgress
}

/**
 * Takes a slot without admission: a node that is already disrupted takes capacity, with or without a slot. Safe to
 * repeat; a slot of the scope that is already ours is returned instead.
 */
export async function createRecoverySlot(
  leases: Leases,
  request: Creation,
  signal?: AbortSignal,
): Promise<AcquireOutcome> {
  return await create(leases, request, { target: { kind: 'recovery' }, isRepeated: false }, signal)
}

/** `isRepeated`: an earlier CREATE of exactly this name was not answered. */
type CreationTarget = { readonly target: SlotTarget; readonly isRepeated: boolean }

/** Whether a wait for a slot has this reason: the API server has answered, and its answer was a refusal. */
export const isRejectedSlot = (reason: string): boolean => reason.startsWith('the API server rejected the slot: ')

/** One CREATE of exactly this name, and its outcome. */
export async function create(
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
      return { outcome: 'rejected', reason: `the API server rejected the slot: ${messageOf(error)}` }
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
  // a request that was refused, as for overload, is not carried out later
  const isOpen = 'index' in target && (isUnknownOutcome(failure) || isAlreadyExists(failure))
  return { outcome: 'unknown', error: failure, ...(isOpen && { unansweredIndex: target.index }) }
}

/**
 * After a refusal like that of the policy of one slot per holder. Either an unanswered CREATE took effect after all, or
 * the API server's policies, which read a cache some milliseconds old, do not show a release yet.
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

/** The one slot that we hold in the scope already. */
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
