import type { Scope } from '../../src/lease/names.ts'
import { newLease, readSlot, type Slot, type SlotProgress, type SlotTarget } from '../../src/lease/slot.ts'

const slots = new Map<string, Slot>()

/** A slot as a LIST shows it, from the Lease that the product would write. Equal ones are one. */
export function listedSlot(
  scope: Scope,
  target: SlotTarget,
  { name, uid }: { readonly name: string; readonly uid: string },
  { phase = 'working', epoch }: Partial<Pick<SlotProgress, 'phase' | 'epoch'>> = {},
): Slot {
  const key = [scope.hash, ...Object.values(target), name, uid, phase, epoch].join(' ')
  const existing = slots.get(key)
  if (existing) return existing
  const progress = { phase, epoch, generation: 1, packages: [] }
  const { metadata, ...lease } = newLease(scope, target, { name, uid, bootId: 'boot' }, progress, 0)
  const slot = readSlot({ ...lease, metadata: { ...metadata, uid: key, resourceVersion: '1' } })
  if (!slot) throw new Error(`not a slot: ${key}`)
  slots.set(key, slot)
  return slot
}
