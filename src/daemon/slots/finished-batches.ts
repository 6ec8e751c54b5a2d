import { startReflector } from '../../kube/reflector.ts'
import { readLedger } from '../../lease/ledger.ts'
import { ledgerName } from '../../lease/names.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import type { Lease, Slot } from '../../lease/slot.ts'
import type { Random } from '../../schemas/clock.ts'
import type { OwnSlot } from '../../stages/model/snapshot.ts'

/** Whether the batches are over for which this node keeps the slots of finished work. */
export type FinishedBatches = {
  /** Of a slot of the Skyhook with this uid. Not before an answer says so: nobody counts a slot that is gone. */
  isOver(slot: Slot, skyhookUid: string | undefined): boolean
  /** Follows the ledgers of the slots that are kept for their batch, and no others. */
  update(slots: readonly OwnSlot[]): void
  /** Another value after each change of an answer. */
  version(): number
}

type Followed = { readonly lease: () => Lease | undefined; readonly close: () => void }

export function followFinishedBatches(
  leases: Leases,
  { random, wake, signal }: { readonly random: Random; readonly wake: () => void; readonly signal: AbortSignal },
): FinishedBatches {
  /** By uid of the Skyhook. */
  const followed = new Map<string, Followed>()
  let version = 0

  function follow(name: string, uid: string): Followed {
    const ledger = ledgerName({ name, uid })
    const closing = new AbortController()
    const reflector = startReflector<Lease>(leases.transport, {
      clock: leases.clock,
      random,
      path: leasesPathOf(leases),
      query: { fieldSelector: `metadata.name=${ledger}` },
      onChange({ changes }) {
        if (changes.length === 0 || closing.signal.aborted) return
        version++
        wake()
      },
      signal: AbortSignal.any([signal, closing.signal]),
    })
    reflector.ended.catch(() => undefined) // only the callback could make it reject, and it does not throw
    return { lease: () => reflector.store.get(ledger), close: () => closing.abort() }
  }

  return {
    isOver({ epoch, compartmentName }, skyhookUid) {
      const lease = followed.get(skyhookUid ?? '')?.lease()
      const read = lease && readLedger(lease)
      if (epoch === undefined || read?.outcome !== 'read') return false
      const batch = read.ledger.compartments[compartmentName]?.batch
      return batch === undefined || batch.epoch > epoch
    },

    update(slots) {
      const kept = new Map(
        slots
          .filter(({ phase, batch }) => phase === 'finished' && batch !== undefined)
          .flatMap(({ skyhook, skyhookUid }) => (skyhookUid === undefined ? [] : [[skyhookUid, skyhook] as const])),
      )
      for (const [uid, { close }] of followed) {
        if (kept.has(uid)) continue
        close()
        followed.delete(uid)
      }
      for (const [uid, name] of kept) if (!followed.has(uid)) followed.set(uid, follow(name, uid))
    },

    version: () => version,
  }
}
