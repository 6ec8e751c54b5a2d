/**
 * The requests of the slot protocol about a slot that the node holds; requests for a new slot are in
 * slot-acquisition.ts. None of them waits or repeats in the background: each returns its result, and the loop decides.
 * None reads a cache: an admission on old data would break the budget.
 *
 * Slots do not expire. A slot ends when its node deletes it, when the Node object is gone, or when a person deletes it.
 */
import { isConflict, isNotFound, isUnknownOutcome } from '../kube/errors.ts'
import { leasesPathOf, observeSlot, type Leases } from './slot-reads.ts'
import {
  readSlot,
  renewedLease,
  slotLabelsOf,
  type Lease,
  type NodeIdentity,
  type Slot,
  type SlotProgress,
} from './slot.ts'

export type Held = { readonly outcome: 'held'; readonly slot: Slot }
export type Lost = { readonly outcome: 'lost'; readonly reason: string }
export type Unknown = {
  readonly outcome: 'unknown'
  readonly error: unknown
  /** Of a CREATE that may still be carried out: the next request must name it. */
  readonly unansweredIndex?: number
}

export type RenewOutcome = Held | Lost | Unknown

export type ReleaseOutcome =
  | { readonly outcome: 'released' }
  /** Another node holds the name now: nothing was deleted. */
  | Lost
  | Unknown

/** Conflicts with other writers (a person's annotation) are few: more than this is a fight. */
const maxConflicts = 5

/**
 * Reports progress, restores the labels, and proves that the slot is still ours. Only `held` allows the next step;
 * repeat `unknown`.
 */
export async function renew(
  leases: Leases,
  slot: Slot,
  node: NodeIdentity,
  progress: SlotProgress,
  signal?: AbortSignal,
): Promise<RenewOutcome> {
  const target = { name: slot.name, uid: slot.uid, labels: slotLabelsOf(slot.lease) }
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
    const observed = await observeSlot(leases, target, node, signal)
    if (observed.is === 'unknown') return { outcome: 'unknown', error: observed.error }
    if (observed.is !== 'ours') return { outcome: 'lost', reason: observed.reason }
    current = observed.slot // another client wrote into it, or the answer to our PUT was lost
  }
}

/** Gives the slot back, exactly this one. Safe to repeat, which is up to the caller after `unknown`. */
export async function release(
  leases: Leases,
  slot: Slot,
  node: NodeIdentity,
  signal?: AbortSignal,
): Promise<ReleaseOutcome> {
  const target = { name: slot.name, uid: slot.uid, labels: slotLabelsOf(slot.lease) }
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
    const observed = await observeSlot(leases, target, node, signal)
    if (observed.is === 'unknown') return { outcome: 'unknown', error: failure }
    if (observed.is === 'gone' || (observed.is === 'foreign' && isUnknownOutcome(failure)))
      return { outcome: 'released' }
    if (observed.is === 'foreign') return { outcome: 'lost', reason: observed.reason }
    // not repeated here: each attempt may last until its timeout, and the caller has to say why the slot is still held
    if (isUnknownOutcome(failure)) return { outcome: 'unknown', error: failure }
    current = observed.slot
  }
}

/**
 * A CREATE without an answer may take effect late, in addition to the slot taken meanwhile: the node would count twice.
 */
export async function releaseDuplicates(
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
