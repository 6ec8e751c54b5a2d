import { getIfExists } from '../../kube/get.ts'
import { startReflector } from '../../kube/reflector.ts'
import { controlPlaneScope, ledgerName, scopeSelector, skyhookScope, type SkyhookIdentity } from '../../lease/names.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import { isLedger, type Lease, readSlot, type Slot } from '../../lease/slot.ts'
import { placeKey } from '../../lease/waiting.ts'
import type { Random } from '../../schemas/clock.ts'

/** What is watched: the ledger of a Skyhook alone, with all of its slots, or the control plane's slot. */
export type WatchedLeases = 'ledger' | 'slots' | 'control-plane'

/** A hint, never an admission. */
export type LeaseWatch = {
  readonly of: WatchedLeases
  /** These are undefined until there was time to see what is there. */
  readonly ledgers: () => readonly Lease[] | undefined
  readonly slots: () => readonly Slot[] | undefined
  /** Places of the nodes that have held a slot since the ledger was written. */
  readonly holders: () => ReadonlySet<string>
  close(): void
}

/** What is there comes with the watch, without a LIST: within this after it is open. */
const shownWithinMs = 50

export function watchLeases(
  leases: Leases,
  of: WatchedLeases,
  options: {
    readonly skyhook: SkyhookIdentity
    readonly random: Random
    readonly onChange: () => void
    readonly signal: AbortSignal
  },
): LeaseWatch {
  const { skyhook } = options
  const closing = new AbortController()
  const slots = new Map<string, Slot>()
  let holders = new Set<string>()
  let isShown = false
  let cancelTimer: (() => void) | undefined
  const changed = (): void => void (!closing.signal.aborted && options.onChange())
  const { store } = startReflector<Lease>(leases.transport, {
    clock: leases.clock,
    random: options.random,
    path: leasesPathOf(leases),
    query:
      of === 'ledger'
        ? { fieldSelector: `metadata.name=${ledgerName(skyhook)}` }
        : { labelSelector: scopeSelector(of === 'slots' ? skyhookScope(skyhook) : controlPlaneScope) },
    initial: { items: [], resourceVersion: '0' },
    onChange({ changes, isListed }) {
      let hasChanged = isListed
      for (const { type, key, object } of changes) {
        const [before, after] = [slots.get(key), type === 'deleted' ? undefined : readSlot(object)]
        if (isLedger(object)) holders = new Set([...slots.values()].map(({ nodeUid }) => placeKey(nodeUid)))
        else if (before === undefined && after !== undefined) holders.add(placeKey(after.nodeUid))
        if (after === undefined) slots.delete(key)
        else slots.set(key, after)
        hasChanged ||= before === undefined || after === undefined || !isSameForOthers(before, after)
      }
      if (of === 'ledger') isShown ||= store.size > 0
      if (hasChanged && isShown) changed()
    },
    onFact({ fact }) {
      if (fact !== 'watching') return
      cancelTimer ??= leases.clock.startTimer(shownWithinMs, () => {
        isShown = true
        changed()
      })
    },
    signal: AbortSignal.any([options.signal, closing.signal]),
  })
  return {
    of,
    ledgers: () => (isShown ? [...store.values()].filter(isLedger) : undefined),
    slots: () => (isShown && of !== 'ledger' ? [...slots.values()] : undefined),
    holders: () => holders,
    close() {
      cancelTimer?.()
      closing.abort()
    },
  }
}

/** Most renewals of a slot change nothing for those who wait. */
const isSameForOthers = (one: Slot, other: Slot): boolean =>
  one.phase === other.phase || (one.epoch === undefined && one.currentCompartment === other.currentCompartment)

/** A Lease as the server's cache has it: cheap, and good enough for what is only a hint. Throws without an answer. */
export const readLease = (leases: Leases, name: string, signal: AbortSignal): Promise<Lease | undefined> =>
  getIfExists(leases.transport, `${leasesPathOf(leases)}/${name}`, { query: { resourceVersion: 0 }, signal })
