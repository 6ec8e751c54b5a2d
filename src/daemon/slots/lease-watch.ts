import { getIfExists } from '../../kube/get.ts'
import { startReflector } from '../../kube/reflector.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import type { Random } from '../../schemas/clock.ts'

/** What an earlier read has shown of a Lease. */
export type LeaseSeen = { readonly lease: Lease | undefined; readonly resourceVersion: string }

/** Nobody has looked yet: the watch begins with the Lease, if there is one. An absence it does not show. */
export const unseen: LeaseSeen = { lease: undefined, resourceVersion: '0' }

export type LeaseWatch = { readonly name: string; close(): void }

/**
 * Follows one Lease by its name, from what was seen of it: one watch, no LIST. `onChange` hears of each change, with
 * undefined when the Lease is gone. A LIST after a watch that broke is heard also where it shows no Lease again: one
 * may have been there meanwhile, and whoever was refused because of it waits for this.
 */
export function watchLease(
  leases: Leases,
  name: string,
  seen: LeaseSeen,
  options: {
    readonly random: Random
    readonly onChange: (lease: Lease | undefined) => void
    readonly signal: AbortSignal
  },
): LeaseWatch {
  const closing = new AbortController()
  const { store } = startReflector<Lease>(leases.transport, {
    clock: leases.clock,
    random: options.random,
    path: leasesPathOf(leases),
    query: { fieldSelector: `metadata.name=${name}` },
    initial: { items: seen.lease === undefined ? [] : [seen.lease], resourceVersion: seen.resourceVersion },
    onChange({ changes }) {
      if (changes.length > 0 && !closing.signal.aborted) options.onChange(store.get(name))
    },
    onListed() {
      if (!store.has(name) && !closing.signal.aborted) options.onChange(undefined)
    },
    signal: AbortSignal.any([options.signal, closing.signal]),
  })
  return { name, close: () => closing.abort() }
}

/** A Lease as the server's cache has it: cheap, and good enough for what is only a hint. Throws without an answer. */
export const readLease = (leases: Leases, name: string, signal: AbortSignal): Promise<Lease | undefined> =>
  getIfExists(leases.transport, `${leasesPathOf(leases)}/${name}`, { query: { resourceVersion: 0 }, signal })
