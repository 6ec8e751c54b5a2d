import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A complete package does not run again until its part of the spec changes or its host requests a run. */
export const completePackagesRest: Invariant = ({ completed, requestedRuns, keyOf }) => ({
  stepStarts(action) {
    const key = keyOf(action)
    if (action.stage === 'config' && requestedRuns.delete(key)) completed.delete(key)
    if (completed.has(key)) violate(`${describeStep(action)} runs although the package was complete`)
  },
})
