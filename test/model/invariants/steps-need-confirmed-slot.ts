import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A step runs only under a confirmed slot of its Skyhook. */
export const stepsNeedConfirmedSlot: Invariant = ({ viewOf }) => ({
  stepStarts(action, { slots }) {
    const { uid } = viewOf(action).metadata
    const slot = slots.known ? slots.value.find(({ skyhookUid }) => skyhookUid === uid) : undefined
    if (!slot?.confirmed) violate(`${describeStep(action)} runs without a confirmed slot`)
  },
})
