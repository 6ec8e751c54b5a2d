import { countedScope, fleetOf } from '../../lease/ledger.ts'
import { effectiveLimit, type Limit } from '../../lease/rule.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import type { Lease } from '../../lease/slot.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/**
 * How many nodes may be out for this Skyhook at once: by its own spec of this moment and, for percentages, by what the
 * census counted.
 */
export function limitOf({ metadata, spec }: SkyhookView, ledgers: readonly Lease[]): Limit {
  if (spec.deploymentPolicy) return { unknown: 'this version does not evaluate deployment policies' }
  const { count, percent, maxCount } = spec.interruptionBudget ?? {}
  const ownBudget = {
    ...(typeof count === 'number' && { count }),
    ...(typeof percent === 'number' && { percent }),
    ...(maxCount !== undefined && { maxCount }),
  }
  return effectiveLimit(
    ownBudget,
    undefined,
    countedScope(ledgers, { skyhook: metadata, selectorHash: selectorHash(spec.nodeSelectors) }),
  )
}

/**
 * About how many nodes wait for a slot of this Skyhook, for spreading them; few while nobody has counted, so that small
 * clusters are quick.
 */
export function waitersOf({ metadata }: SkyhookView, ledgers: readonly Lease[]): number {
  return ledgers.length === 0 ? defaultWaiters : Math.max(1, fleetOf(ledgers, metadata).waiters)
}

const defaultWaiters = 10
