import type { Scope } from '../../../src/lease/names.ts'
import {
  newLease,
  type NodeIdentity,
  readSlot,
  type Slot,
  type SlotProgress,
  type SlotTarget,
} from '../../../src/lease/slot.ts'

/** A slot as a LIST shows it; its node is at work unless `progress` says otherwise. */
export function listedSlot(
  scope: Scope,
  target: SlotTarget,
  node: NodeIdentity,
  progress: Partial<SlotProgress> = {},
  { uid = 'lease-uid', renewedAtMs = 0 } = {},
): Slot {
  const lease = newLease(
    scope,
    target,
    node,
    { phase: 'working', generation: 1, packages: [], ...progress },
    renewedAtMs,
  )
  const slot = readSlot({ ...lease, metadata: { ...lease.metadata, uid, resourceVersion: '1' } })
  if (slot === undefined) throw new Error('a new Lease is a slot')
  return slot
}
