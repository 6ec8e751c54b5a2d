/** Slots, read from the Leases. */
import { readSlot, type Slot } from '../../../src/lease/slot.ts'
import type { Moment, View } from './moments.ts'
import { publishedState } from './skyhooks.ts'

/** Slots of a Skyhook that are held. */
export function slotsOf({ leases }: View, skyhook: string): Slot[] {
  return [...leases.values()].flatMap((lease) => {
    const slot = lease.metadata.labels?.['skyhook.nvidia.com/name'] === skyhook ? readSlot(lease) : undefined
    return slot ? [slot] : []
  })
}

/** For `never`: more slots than the budget. `joining`: so many nodes may use the budget of nodes that join, beside it. */
export function overBudget(skyhook: string, budget: number, joining = 0): (moment: Moment) => string | undefined {
  return (moment) => {
    const heldSlots = slotsOf(moment, skyhook)
    const counted = heldSlots.filter(({ kind }) => kind !== 'bootstrap')
    return counted.length > budget || heldSlots.length > budget + joining
      ? `slots held by ${heldSlots.map(({ holder }) => holder).join(' and ')}`
      : undefined
  }
}

/** For `never`: a node that works without a slot. */
export function workWithoutSlot(skyhook: string): (moment: Moment) => string | undefined {
  return (moment) => {
    const holders = slotsOf(moment, skyhook).map(({ holder }) => holder)
    const idle = [...moment.nodes.values()].find(
      (node) => publishedState(node, skyhook).status === 'in_progress' && !holders.includes(node.metadata.name),
    )
    return idle && `${idle.metadata.name} is in_progress and holds no slot`
  }
}
