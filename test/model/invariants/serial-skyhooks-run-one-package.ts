import { describeStep, isCheck } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A serial Skyhook starts a stage of a package only while none of its other packages runs. */
export const serialSkyhooksRunOnePackage: Invariant = ({ node, viewOf }) => ({
  stepStarts(action) {
    const { spec, metadata } = viewOf(action)
    if (!spec.serial || action.attempt.index !== 0 || isCheck(action)) return
    if (node.running().some(({ view }) => view.metadata.name === metadata.name))
      violate(`${describeStep(action)} runs beside another package of a serial Skyhook`)
  },
})
