import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** Steps and interrupts never overlap: neither starts while the other is under way. */
export const stepsAndInterruptsAreApart: Invariant = ({ node }) => ({
  stepStarts(action) {
    if (node.interrupting.size > 0) violate(`${describeStep(action)} runs while an interrupt is under way`)
  },
  interruptStarts() {
    const running = node.running()[0]
    if (running) violate(`an interrupt runs while ${describeStep(running)} runs`)
  },
})
