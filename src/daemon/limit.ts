import { budget, percentWithoutCensus } from '../lease/rule.ts'
import type { Limit } from '../lease/rule.ts'
import type { SkyhookView } from '../stages/world.ts'

/** How many nodes may be out for this Skyhook at once, by its own spec of this moment. */
export function limitOf({ spec }: SkyhookView): Limit {
  if (spec.deploymentPolicy) return { unknown: 'deployment policies are not evaluated by this version' }
  const { count, percent, maxCount } = spec.interruptionBudget ?? {}
  const own = {
    ...(typeof count === 'number' && { count }),
    ...(typeof percent === 'number' && { percent }),
    ...(maxCount !== undefined && { maxCount }),
  }
  return budget(own, undefined, percentWithoutCensus)
}
