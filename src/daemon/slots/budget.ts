import { countedScope, fleetOf } from '../../lease/ledger.ts'
import { effectiveLimit, type Limit } from '../../lease/rule.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import type { Lease } from '../../lease/slot.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/**
 * How many nodes may be out for this Skyhook at once: by its current spec and, for percentages, by the count of the
 * census.
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
 * About how many nodes wait for a slot of this Skyhook, to spread their requests; few before the first count, so that
 * small clusters are quick.
 */
export function waitersOf({ metadata }: SkyhookView, ledgers: readonly Lease[]): number {
  return ledgers.length === 0 ? defaultWaiters : Math.max(1, fleetOf(ledgers, metadata).waiters)
}

const defaultWaiters = 10
