import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A package begins to change only when all packages it depends on are complete on the host. */
export const dependenciesComeFirst: Invariant = ({ beginsChange, viewOf, isDone }) => ({
  stepStarts(action) {
    if (!beginsChange(action)) return
    const { metadata, spec } = viewOf(action)
    for (const dependency of Object.keys(spec.packages?.[action.record.name]?.dependsOn ?? {})) {
      const wanted = spec.packages?.[dependency]
      if (wanted && !isDone(`${metadata.name}/${dependency}`, wanted))
        violate(`${describeStep(action)} runs before ${dependency}, on which it depends, is complete`)
    }
  },
})
