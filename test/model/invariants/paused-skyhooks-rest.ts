import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A paused Skyhook starts no step. */
export const pausedSkyhooksRest: Invariant = ({ viewOf }) => ({
  stepStarts(action) {
    if (viewOf(action).metadata.annotations?.['skyhook.nvidia.com/pause'] === 'true')
      violate(`${describeStep(action)} runs while paused`)
  },
})
