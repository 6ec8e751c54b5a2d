import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A package runs one step at a time. */
export const packagesRunOneStep: Invariant = ({ node }) => ({
  stepStarts(action) {
    const { view, record } = action
    const isSame = (other: typeof action): boolean =>
      other.view.metadata.name === view.metadata.name && other.record.name === record.name
    if (node.running().some(isSame)) violate(`${describeStep(action)} runs beside another step of its package`)
  },
})
