/** The history of the batches of a run, as the ledger and the slots had it: each version of a batch, without times. */
import { type Ledger, readLedger } from '../../../src/lease/ledger.ts'
import { skyhookScope } from '../../../src/lease/names.ts'
import { readSlot, type Lease } from '../../../src/lease/slot.ts'
import type { BatchState } from '../../../src/schemas/deployment-policy.ts'
import type { Invariant } from '../../promises/promised.ts'

/** A batch that is over. */
export type ClosedBatch = {
  readonly skyhook: string
  readonly compartment: string
  readonly epoch: number
  /** The places that it had. */
  readonly size: number
  /** Nodes that were admitted to it. */
  readonly admitted: number
  /** Of these, as the ledger counted them. */
  readonly succeeded: number
  readonly failed: number
  /** What the ledger says of the next one. */
  readonly next: Pick<BatchState, 'epoch' | 'size' | 'consecutiveFailures' | 'stopped'>
}

export type BatchHistory = {
  /** In the order in which each compartment had them, without those that a reset ended. */
  readonly closed: ClosedBatch[]
  /** Holders of slots, each time that the node was done with the work of its batch. */
  readonly finished: string[]
  /** Virtual time of the last of them. */
  lastClosedAtMs: number
}

/** Records beside the rules, and judges nothing. */
export function recordBatches(): { readonly recorder: Invariant; readonly history: BatchHistory } {
  const history: BatchHistory = { closed: [], finished: [], lastClosedAtMs: 0 }
  const recorder: Invariant = {
    name: 'batch-history',
    watch(world) {
      /** By scope and epoch. */
      const holders = new Map<string, Set<string>>()

      function seeLedger(before: Ledger | undefined, after: Ledger, atMs: number): void {
        const skyhook = world.server.objects('skyhooks').find(({ metadata }) => metadata.uid === after.skyhookUID)
        if (skyhook === undefined || before === undefined || before.reset !== after.reset) return
        for (const [compartment, { batch }] of Object.entries(after.compartments)) {
          const was = before.compartments[compartment]?.batch
          if (batch === undefined || was === undefined || was.epoch === batch.epoch) continue
          const { epoch, size, consecutiveFailures, stopped } = batch
          const { hash } = skyhookScope({ name: skyhook.metadata.name, uid: after.skyhookUID }, compartment)
          history.lastClosedAtMs = atMs
          history.closed.push({
            skyhook: skyhook.metadata.name,
            compartment,
            epoch: was.epoch,
            size: was.size,
            admitted: holders.get(`${hash} ${was.epoch}`)?.size ?? 0,
            succeeded: batch.completed - was.completed,
            failed: batch.failed - was.failed,
            next: { epoch, size, consecutiveFailures, stopped },
          })
        }
      }

      return {
        on(event, atMs) {
          if (event.kind !== 'commit' || event.change.resource.plural !== 'leases') return
          const { type, version, previous } = event.change
          const lease = version.object as unknown as Lease
          const slot = readSlot(lease)
          if (slot === undefined) {
            const [after, before] = [lease, previous?.object as unknown as Lease | undefined].map((one) => {
              const read = one && readLedger(one)
              return read?.outcome === 'read' ? read.ledger : undefined
            })
            if (after !== undefined && type !== 'DELETED') seeLedger(before, after, atMs)
          } else if (type === 'ADDED' && slot.epoch !== undefined) {
            const key = `${slot.scope} ${slot.epoch}`
            const names = holders.get(key) ?? new Set()
            holders.set(key, names.add(slot.holder))
          } else if (type === 'MODIFIED' && slot.epoch !== undefined && slot.phase === 'finished') {
            const was = previous && readSlot(previous.object as unknown as Lease)
            if (was?.phase !== 'finished') history.finished.push(slot.holder)
          }
        },
        checks: () => history.closed.length,
      }
    },
  }
  return { recorder, history }
}
