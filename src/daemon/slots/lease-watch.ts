import { getIfExists } from '../../kube/objects.ts'
import { startReflector } from '../../kube/reflector.ts'
import { indexSelector, ledgerName, type Scope, scopeSelector, type SkyhookIdentity } from '../../lease/names.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import { type Lease, readSlot, type Slot } from '../../lease/slot.ts'
import type { Watched } from '../../lease/wait-state.ts'
import type { Random } from '../../schemas/clock.ts'

export type LeaseQuery = { readonly fieldSelector: string } | { readonly labelSelector: string }

/** Undefined if nothing is watched. */
export function queryOf(watched: Watched, skyhook: SkyhookIdentity, scope: Scope): LeaseQuery | undefined {
  if (watched === 'nothing') return undefined
  if (watched === 'ledger') return { fieldSelector: `metadata.name=${ledgerName(skyhook)}` }
  return { labelSelector: watched === 'all' ? scopeSelector(scope) : indexSelector(scope, watched) }
}

/** The result is a hint, never an admission. */
export type LeaseWatch = {
  readonly query: LeaseQuery
  /** The ledger with this name: that of a former Skyhook may exist, too. Undefined until it was seen. */
  readonly ledger: (name: string) => Lease | undefined
  /** Undefined until existing slots had time to arrive, and if only the ledger is watched. */
  readonly slots: () => readonly Slot[] | undefined
  close(): void
}

/** Existing objects arrive with the watch, without a LIST, within this time after it opens. */
const shownWithinMs = 50

export function watchLeases(
  leases: Leases,
  query: LeaseQuery,
  options: {
    readonly random: Random
    readonly onChange: () => void
    readonly signal: AbortSignal
  },
): LeaseWatch {
  const areSlots = 'labelSelector' in query
  const closing = new AbortController()
  const slots = new Map<string, Slot>()
  let isShown = false
  let cancelTimer: (() => void) | undefined
  const changed = (): void => void (!closing.signal.aborted && options.onChange())
  const { store } = startReflector<Lease>(leases.transport, {
    clock: leases.clock,
    random: options.random,
    path: leasesPathOf(leases),
    query,
    initial: { items: [], resourceVersion: '0' },
    onChange({ changes, isListed }) {
      let hasChanged = isListed
      for (const { type, key, object } of changes) {
        const [before, after] = [slots.get(key), type === 'deleted' ? undefined : readSlot(object)]
        if (after === undefined) slots.delete(key)
        else slots.set(key, after)
        hasChanged ||= before === undefined || after === undefined || !isSameForOthers(before, after)
      }
      if (!areSlots) isShown ||= store.size > 0
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
    query,
    ledger: (name) => (isShown ? store.get(name) : undefined),
    slots: () => (isShown && areSlots ? [...slots.values()] : undefined),
    close() {
      cancelTimer?.()
      closing.abort()
    },
  }
}

/** Most renewals of a slot change nothing for waiting nodes. */
const isSameForOthers = (one: Slot, other: Slot): boolean =>
  one.phase === other.phase || (one.epoch === undefined && one.currentCompartment === other.currentCompartment)

/** A Lease from the server's cache: cheap, and sufficient for a hint. Throws without an answer. */
export const readLease = (leases: Leases, name: string, signal: AbortSignal): Promise<Lease | undefined> =>
  getIfExists(leases.transport, `${leasesPathOf(leases)}/${name}`, { query: { resourceVersion: 0 }, signal })
