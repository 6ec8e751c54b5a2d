import { startReflector } from '../../kube/reflector.ts'
import { readLedger } from '../../lease/ledger.ts'
import { ledgerName } from '../../lease/names.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import type { Lease, Slot } from '../../lease/slot.ts'
import type { Random } from '../../schemas/clock.ts'
import type { OwnSlot } from '../../stages/model/snapshot.ts'

/** Whether the batches have ended for which this node keeps slots of finished work. */
export type FinishedBatches = {
  /**
   * Whether the batch of this slot of the Skyhook has ended. True only after an answer confirms it, because a deleted
   * slot is not counted.
   */
  isOver(slot: Slot, skyhookUid: string | undefined): boolean
  /** Follows only the ledgers of slots that are kept for their batch. */
  update(slots: readonly OwnSlot[]): void
  /** Changes with each change of an answer. */
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
    reflector.ended.catch(() => undefined) // only the callback could make it reject, and it never throws
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
