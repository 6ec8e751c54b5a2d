import { startReflector } from '../../kube/reflector.ts'
import { labelKeys, scopeSelector, skyhookScope } from '../../lease/names.ts'
import { admissibleIndices, type Limit } from '../../lease/rule.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import { heldIndices, readSlot, type Lease, type Slot } from '../../lease/slot.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import type { Known, SkyhookView } from '../../stages/model/snapshot.ts'
import { limitOf, waitersOf } from './budget.ts'
import type { SlotManager } from './slot-manager.ts'

/**
 * While this node waits for a slot of a Skyhook it watches the slots of that scope, so that the next node starts when
 * one is released and not at the next retry. The watch grants nothing: it only says when a request is worthwhile.
 */
export type SlotWatch = {
  /** Watches exactly the scopes that this node waits for; called after every decision. */
  update(): void
}

/** Spread of the requests after a slot was released, per waiter and free slot (simulated for 1,000 nodes). */
const spreadMsPerWaiter = 15

export function createSlotWatch(options: {
  readonly leases: Leases
  readonly slots: Pick<SlotManager, 'denials' | 'requestNow'>
  readonly skyhooks: () => Known<readonly SkyhookView[]>
  readonly clock: Clock
  readonly random: Random
  readonly wake: () => void
  readonly signal: AbortSignal
}): SlotWatch {
  const { leases, slots, clock, random, wake, signal } = options
  /** By uid of the Skyhook. */
  const watches = new Map<string, AbortController>()

  const views = (): readonly SkyhookView[] => {
    const skyhooks = options.skyhooks()
    return skyhooks.known ? skyhooks.value : []
  }

  function watch(view: SkyhookView): AbortController {
    const { name, uid } = view.metadata
    const scope = skyhookScope({ name, uid })
    const watchController = new AbortController()
    let cancelRequest: (() => void) | undefined
    function cancel(): void {
      cancelRequest?.()
      cancelRequest = undefined
    }
    function checkFreeSlots(): void {
      const objects = [...reflector.store.values()]
      const taken = objects.map(readSlot).filter((slot): slot is Slot => slot !== undefined)
      const ledgers = objects.filter(({ metadata }) => metadata.labels?.[labelKeys.slotKind] === 'ledger')
      const latestView = views().find(({ metadata }) => metadata.uid === uid) ?? view
      const freeCount = countFree(limitOf(latestView, ledgers), heldIndices(taken, scope))
      if (freeCount === 0) return cancel()
      if (cancelRequest) return
      const spreadMs = random.number() * spreadMsPerWaiter * (waitersOf(latestView, ledgers) / freeCount)
      cancelRequest = clock.startTimer(spreadMs, () => {
        cancelRequest = undefined
        if (slots.requestNow(name)) wake()
      })
    }
    const reflector = startReflector<Lease>(leases.transport, {
      clock,
      random,
      path: leasesPathOf(leases),
      query: { labelSelector: scopeSelector(scope) },
      onChange: checkFreeSlots,
      signal: AbortSignal.any([signal, watchController.signal]),
    })
    watchController.signal.addEventListener('abort', cancel)
    return watchController
  }

  return {
    update() {
      const waiting = new Map(
        views()
          .filter(({ metadata }) => {
            const denial = slots.denials().get(metadata.name)
            return denial && !denial.waitsFor
          })
          .map((view) => [view.metadata.uid, view]),
      )
      for (const [uid, watchController] of watches) {
        if (waiting.has(uid)) continue
        watchController.abort()
        watches.delete(uid)
      }
      for (const [uid, view] of waiting) if (!watches.has(uid)) watches.set(uid, watch(view))
    },
  }
}

function countFree(limit: Limit, held: readonly number[]): number {
  if (limit === 'unlimited') return 1
  return typeof limit === 'number' ? admissibleIndices(held, limit).length : 0
}
