import type { Scope } from '../../src/lease/names.ts'
import type { Slot, SlotProgress, SlotTarget } from '../../src/lease/slot.ts'
import * as kit from '../kit/slots/listed-slot.ts'

const slots = new Map<string, Slot>()

/** A slot as a LIST shows it. Equal ones are one: searches compare and read them very often. */
export function listedSlot(
  scope: Scope,
  target: SlotTarget,
  { name, uid }: { readonly name: string; readonly uid: string },
  { phase = 'working', epoch }: Partial<Pick<SlotProgress, 'phase' | 'epoch'>> = {},
): Slot {
  const key = [scope.hash, ...Object.values(target), name, uid, phase, epoch].join(' ')
  const slot =
    slots.get(key) ?? kit.listedSlot(scope, target, { name, uid, bootId: 'boot' }, { phase, epoch }, { uid: key })
  slots.set(key, slot)
  return slot
}
