import type { Transport } from '../../kube/transport.ts'
import { startReflector } from '../../kube/reflector.ts'
import { LABEL, scopeSelector, skyhookScope } from '../../lease/names.ts'
import { admissible } from '../../lease/rule.ts'
import type { Limit } from '../../lease/rule.ts'
import { heldIndices, readSlot } from '../../lease/slot.ts'
import type { Lease, Slot } from '../../lease/slot.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { limitOf, waitersOf } from './budget.ts'
import type { State } from '../state/state.ts'

/**
 * While this node waits for a slot of a Skyhook it watches the slots of that scope, so that the next node begins when one is
 * given back and not at the next round of asking. The watch grants nothing: it only says when asking is worth while.
 */
export type SlotNews = { update(): void }

/** Spread of the waiters after a slot came free, per waiter and free slot (design: simulated for 1,000 nodes). */
const spreadMsPerWaiter = 15

export function followSlotNews(options: {
  readonly transport: Transport
  readonly namespace: string
  readonly state: State
  readonly wake: () => void
  readonly signal: AbortSignal
}): SlotNews {
  const { transport, namespace, state, wake, signal } = options
  const watches = new Map<string, AbortController>()

  function watch(view: SkyhookView): void {
    const { name, uid } = view.metadata
    const scope = skyhookScope({ name, uid })
    const stop = new AbortController()
    watches.set(uid, stop)
    let drawn: NodeJS.Timeout | undefined
    const look = (): void => {
      const leases = [...reflector.store.values()]
      const slots = leases.map(readSlot).filter((slot): slot is Slot => slot !== undefined)
      const ledgers = leases.filter(({ metadata }) => metadata.labels?.[LABEL.slotKind] === 'ledger')
      const now = currentView(uid) ?? view
      const free = freeOf(limitOf(now, ledgers), heldIndices(slots, scope))
      if (free === 0) {
        clearTimeout(drawn)
        drawn = undefined
        return
      }
      drawn ??= setTimeout(
        () => {
          drawn = undefined
          const asked = state.waiting.get(name)
          if (!asked) return
          state.waiting.set(name, { ...asked, askAgainAtMs: 0 })
          wake()
        },
        Math.random() * spreadMsPerWaiter * (waitersOf(now, ledgers) / free),
      )
    }
    const reflector = startReflector<Lease>(transport, {
      path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      query: { labelSelector: scopeSelector(scope) },
      onChange: look,
      signal: AbortSignal.any([signal, stop.signal]),
    })
    stop.signal.addEventListener('abort', () => clearTimeout(drawn))
  }

  const currentView = (uid: string): SkyhookView | undefined =>
    state.skyhooks.known ? state.skyhooks.value.find(({ metadata }) => metadata.uid === uid) : undefined

  return {
    /** Begins to watch what is newly waited for and ends what is not any more; called after every decision. */
    update() {
      const wanted = new Map(
        (state.skyhooks.known ? state.skyhooks.value : [])
          .filter(({ metadata }) => state.waiting.has(metadata.name))
          .map((view) => [view.metadata.uid, view]),
      )
      for (const [uid, stop] of watches) {
        if (wanted.has(uid)) continue
        stop.abort()
        watches.delete(uid)
      }
      for (const [uid, view] of wanted) if (!watches.has(uid)) watch(view)
    },
  }
}

function freeOf(limit: Limit, held: readonly number[]): number {
  if (limit === 'unlimited') return 1
  return typeof limit === 'number' ? admissible(held, limit).length : 0
}
