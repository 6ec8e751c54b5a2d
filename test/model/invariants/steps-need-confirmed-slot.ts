import { isConfirmedFor } from '../../../src/stages/skyhook/slot.ts'
import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/**
 * A step runs only under a slot of its Skyhook that is known to be ours, the first one only under a slot that was
 * confirmed for the spec which the step is of.
 */
export const stepsNeedConfirmedSlot: Invariant = ({ viewOf }) => ({
  stepStarts(action, { slots, journal }) {
    const { uid } = viewOf(action).metadata
    const slot = slots.known ? slots.value.find(({ skyhookUid }) => skyhookUid === uid) : undefined
    const hasStarted = journal.skyhooks[action.view.metadata.name]?.lifecycle !== undefined
    const isAllowed = hasStarted
      ? slot?.ownership !== 'seen'
      : slot !== undefined && isConfirmedFor(slot, viewOf(action))
    if (!slot || !isAllowed) violate(`${describeStep(action)} runs without a confirmed slot`)
  },
})
