/** Reads of slots. Always consistent: a LIST without a resourceVersion shows every write acknowledged before it. */
import { isNotFound } from '../kube/errors.ts'
import { type ListResult, listAll } from '../kube/objects.ts'
import type { KubeTransport } from '../kube/transport.ts'
import type { Clock } from '../schemas/clock.ts'
import { controlPlaneScope, labelKeys, scopeSelector, selectorWithControlPlane, type Scope } from './names.ts'
import {
  countsTowards,
  isHeldBy,
  isLedger,
  readSlot,
  withSlotLabels,
  type Lease,
  type NodeIdentity,
  type Slot,
} from './slot.ts'

/** The Leases of the agent's namespace. */
export type Leases = { readonly transport: KubeTransport; readonly namespace: string; readonly clock: Clock }

export type ScopeListing = {
  readonly slots: readonly Slot[]
  readonly ledgers: readonly Lease[]
  /** A watch from here misses nothing. */
  readonly resourceVersion: string
}

export const leasesPathOf = ({ namespace }: Pick<Leases, 'namespace'>): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`

/** All slots that count in the scope, and the Skyhook's ledger, in one consistent LIST. */
export async function listScope(leases: Leases, scope: Scope, signal?: AbortSignal): Promise<ScopeListing> {
  return listingOf(await listLeases(leases, scopeSelector(scope), signal), scope)
}

/** The same for the scope of a Skyhook and for the control plane, in one consistent LIST of both. */
export async function listWithControlPlane(
  leases: Leases,
  scope: Scope,
  signal?: AbortSignal,
): Promise<{ readonly ofSkyhook: ScopeListing; readonly ofControlPlane: ScopeListing }> {
  const listed = await listLeases(leases, selectorWithControlPlane(scope), signal)
  return { ofSkyhook: listingOf(listed, scope), ofControlPlane: listingOf(listed, controlPlaneScope) }
}

/** All slots of a Skyhook of this name, of any scope, in one consistent LIST. */
export async function listSlotsOf(leases: Leases, skyhook: string, signal?: AbortSignal): Promise<readonly Slot[]> {
  const { items } = await listLeases(leases, `${labelKeys.name}=${skyhook}`, signal)
  return slotsIn(items)
}

export type SlotObservation =
  | { readonly is: 'ours'; readonly slot: Slot }
  /** Of an earlier registration of this node: no agent works under it. */
  | { readonly is: 'former'; readonly slot: Slot; readonly reason: string }
  | { readonly is: 'gone'; readonly reason: string }
  | { readonly is: 'foreign'; readonly reason: string }
  | { readonly is: 'unknown'; readonly error: unknown }

/**
 * Who holds the name now? With a uid given, only that Lease is ours. `labels`: the labels it had as a slot, restored by
 * the next write.
 */
export async function observeSlot(
  leases: Leases,
  target: { readonly name: string; readonly uid?: string; readonly labels?: Readonly<Record<string, string>> },
  node: NodeIdentity,
  signal: AbortSignal | undefined,
): Promise<SlotObservation> {
  let lease: Lease
  try {
    lease = await leases.transport.json<Lease>('GET', `${leasesPathOf(leases)}/${target.name}`, { signal })
  } catch (error) {
    signal?.throwIfAborted()
    return isNotFound(error) ? { is: 'gone', reason: `Lease ${target.name} was deleted` } : { is: 'unknown', error }
  }
  const isSame = target.uid === lease.metadata.uid
  const slot = readSlot(isSame && target.labels ? withSlotLabels(lease, target.labels) : lease)
  if (slot === undefined || (target.uid !== undefined && slot.uid !== target.uid) || slot.holder !== node.name)
    return { is: 'foreign', reason: `Lease ${target.name} is held by ${lease.spec?.holderIdentity ?? 'nobody'} now` }
  if (isHeldBy(slot, node)) return { is: 'ours', slot }
  return { is: 'former', slot, reason: `Lease ${target.name} is of an earlier registration of node ${node.name}` }
}

async function listLeases(
  leases: Leases,
  labelSelector: string,
  signal: AbortSignal | undefined,
): Promise<ListResult<Lease>> {
  const options = { query: { labelSelector }, signal, transform: (lease: Lease) => lease }
  return await listAll<Lease, Lease>(leases.transport, leasesPathOf(leases), options)
}

function listingOf({ items, resourceVersion }: ListResult<Lease>, scope: Scope): ScopeListing {
  const ledgers = items.filter(isLedger)
  return { slots: slotsIn(items).filter((slot) => countsTowards(slot, scope)), ledgers, resourceVersion }
}

const slotsIn = (leases: readonly Lease[]): Slot[] => leases.flatMap((lease) => readSlot(lease) ?? [])
