/** What a node with a policy reads about its own compartment, and shows about its batch. */
import { ledgerName, type Scope } from '../../lease/names.ts'
import type { Leases, ScopeListing } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { batchReason, compartmentOf, stopReason } from '../../lease/budget/budget.ts'
import type { Denial } from './denials.ts'
import { readLease } from './lease-watch.ts'

/** `ledger` is set if the policy alone does not determine the compartment. */
type Found = { readonly compartment: string | undefined; readonly ledger?: Lease | undefined }

/** The compartment of this node; undefined while it depends on a missing count. Throws if the ledger cannot be read. */
export async function findCompartment(leases: Leases, view: SkyhookView, signal: AbortSignal): Promise<Found> {
  const compartment = compartmentOf(view, [])
  if (compartment !== undefined) return { compartment }
  const ledger = await readLease(leases, ledgerName(view.metadata), signal)
  return { compartment: ledger && compartmentOf(view, [ledger]), ledger }
}

/**
 * The changes to a denial if the node waits for the next batch, or for the end of a stop. Applies to joining nodes,
 * too.
 */
export function batchDenial(
  view: SkyhookView,
  listing: ScopeListing | undefined,
  kind: Scope['kind'],
): Partial<Denial> {
  const message = listing && (kind === 'bootstrap' ? stopReason : batchReason)(view, listing)
  return message === undefined ? {} : { message, waitsFor: 'batch' }
}
