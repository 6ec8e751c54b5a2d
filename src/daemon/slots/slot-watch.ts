import type { KubeTransport } from '../../kube/transport.ts'
import { startReflector } from '../../kube/reflector.ts'
import { labelKeys, scopeSelector, skyhookScope } from '../../lease/names.ts'
import { admissibleIndices, type Limit } from '../../lease/rule.ts'
import { heldIndices, readSlot, type Lease, type Slot } from '../../lease/slot.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { limitOf, waitersOf } from './budget.ts'
import type { State } from '../state/state.ts'

/**
 * While this node waits for a slot of a Skyhook it watches the slots of that scope, so that the next node begins when
 * one is given back and not at the next round of asking. The watch grants nothing: it only says when asking is worth
 * while.
 * /
 */
export type SlotWatch = { update(): void }

/** Spread of the waiters after a slot came free, per waiter and free slot (design: simulated for 1,000 nodes). */
const spreadMsPerWaiter = 15

export function createSlotWatch(options: {
  readonly transport: KubeTransport
  readonly namespace: string
  readonly state: State
  readonly wake: () => void
  readonly signal: AbortSignal
}): SlotWatch {
  const { transport, namespace, state, wake, signal } = options
  const watches = new Map<string, AbortController>()

  function watch(view: SkyhookView): void {
    const { name, uid } = view.metadata
    const scope = skyhookScope({ name, uid })
    const watchController = new AbortController()
    watches.set(uid, watchController)
    let wakeTimer: NodeJS.Timeout | undefined
    const checkFreeSlots = (): void => {
      const leases = [...reflector.store.values()]
      const slots = leases.map(readSlot).filter((slot): slot is Slot => slot !== undefined)
      const ledgers = leases.filter(({ metadata }) => metadata.labels?.[labelKeys.slotKind] === 'ledger')
      const latestView = currentView(uid) ?? view
      const freeCount = countFree(limitOf(latestView, ledgers), heldIndices(slots, scope))
      if (freeCount === 0) {
        clearTimeout(wakeTimer)
        wakeTimer = undefined
        return
      }
      wakeTimer ??= setTimeout(
        () => {
          wakeTimer = undefined
          const waitingEntry = state.slotDenials.get(name)
          if (!waitingEntry) return
          state.slotDenials.set(name, { ...waitingEntry, nextRequestAtMs: 0 })
          wake()
        },
        Math.random() * spreadMsPerWaiter * (waitersOf(latestView, ledgers) / freeCount),
      )
    }
    const reflector = startReflector<Lease>(transport, {
      path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      query: { labelSelector: scopeSelector(scope) },
      onChange: checkFreeSlots,
      signal: AbortSignal.any([signal, watchController.signal]),
    })
    watchController.signal.addEventListener('abort', () => clearTimeout(wakeTimer))
  }

  const currentView = (uid: string): SkyhookView | undefined =>
    state.skyhooks.known ? state.skyhooks.value.find(({ metadata }) => metadata.uid === uid) : undefined

  return {
    /** Begins to watch what is newly waited for and ends what is not any more; called after every decision. */
    update() {
      const waitingViews = new Map(
        (state.skyhooks.known ? state.skyhooks.value : [])
          .filter(({ metadata }) => state.slotDenials.has(metadata.name))
          .map((view) => [view.metadata.uid, view]),
      )
      for (const [uid, watchController] of watches) {
        if (waitingViews.has(uid)) continue
        watchController.abort()
        watches.delete(uid)
      }
      for (const [uid, view] of waitingViews) if (!watches.has(uid)) watch(view)
    },
  }
}

function countFree(limit: Limit, held: readonly number[]): number {
  if (limit === 'unlimited') return 1
  return typeof limit === 'number' ? admissibleIndices(held, limit).length : 0
}
