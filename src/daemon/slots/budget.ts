import { countedScope, queueIn } from '../../lease/ledger.ts'
import { bootstrapLimit, type CountedScope, effectiveLimit, type Limit } from '../../lease/rule.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import type { Lease } from '../../lease/slot.ts'
import type { Queue } from '../../lease/waiting.ts'
import { appliedHash } from '../../stages/model/applied-hash.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/**
 * How many nodes may be out for this Skyhook at once: by its current spec and, for percentages, by the count of the
 * census.
 */
export function limitOf(view: SkyhookView, ledgers: readonly Lease[]): Limit {
  const { spec } = view
  if (spec.deploymentPolicy) return { unknown: 'this version does not evaluate deployment policies' }
  const { count, percent, maxCount } = spec.interruptionBudget ?? {}
  const ownBudget = {
    ...(typeof count === 'number' && { count }),
    ...(typeof percent === 'number' && { percent }),
    ...(maxCount !== undefined && { maxCount }),
  }
  return effectiveLimit(ownBudget, undefined, countedOf(view, ledgers))
}

/** How many nodes that join the cluster may be at work for this Skyhook at once. */
export const bootstrapLimitOf = (view: SkyhookView, ledgers: readonly Lease[]): Limit =>
  bootstrapLimit(view.spec.bootstrap?.count, limitOf(view, ledgers), countedOf(view, ledgers))

/** Joining nodes are counted apart; where nobody is counted, they need no budget of their own. */
export const hasBootstrapBudget = (view: SkyhookView): boolean => bootstrapLimitOf(view, []) !== 'unlimited'

const countedOf = ({ metadata, spec }: SkyhookView, ledgers: readonly Lease[]): CountedScope =>
  countedScope(ledgers, {
    skyhook: metadata,
    selectorHash: ledgers.length === 0 ? '' : selectorHash(spec.nodeSelectors), // asked for each decision
  })

/** Who else wants a slot of the Skyhook; undefined while the census has not counted its nodes. */
export const queueOf = ({ metadata, spec }: SkyhookView, ledgers: readonly Lease[]): Queue | undefined =>
  queueIn(ledgers, {
    skyhook: metadata,
    selectorHash: selectorHash(spec.nodeSelectors),
    applied: appliedHash(spec),
  })
