import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** One attempt of a step starts at most once in a boot. */
export const stepsStartOnce: Invariant = () => {
  const bootOfStart = new Map<string, string>()
  return {
    stepStarts(action, { bootId }) {
      if (bootOfStart.get(action.attempt.id) === bootId) violate(`${describeStep(action)} is started twice in one boot`)
      bootOfStart.set(action.attempt.id, bootId)
    },
  }
}
