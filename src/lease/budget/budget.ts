/** How many nodes may be out for a Skyhook at once, as far as this node knows. */
import type { BatchState } from '../../schemas/deployment-policy.ts'
import { appliedHash } from '../../stages/model/package-inputs.ts'
import type { Admission } from '../admission.ts'
import { type CountedCompartment, candidatesInLedger, countedScope, queueIn, selectorHash } from '../ledger.ts'
import { skyhookScope } from '../names.ts'
import { batchLimit } from '../policy/batch.ts'
import { compartmentOfNode, compartmentsOf } from '../policy/compartments.ts'
import { nextSize, type Strategy } from '../policy/strategy.ts'
import { bootstrapLimit, ceilingOf, effectiveLimit, type Limit } from '../rule.ts'
import type { ScopeListing } from '../slot-reads.ts'
import type { Lease, Slot } from '../slot.ts'
import type { Queue } from '../waiting.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/** From a LIST, or from the ledger alone. */
type Listed = Pick<ScopeListing, 'ledgers'> & Partial<Pick<ScopeListing, 'slots'>>

/**
 * The compartment of this node; `''` without a policy. Undefined where the policy is not known, or needs a count that
 * is missing.
 */
export function compartmentOf({ metadata, policy, spec }: SkyhookView, ledgers: readonly Lease[]): string | undefined {
  if (!spec.deploymentPolicy) return ''
  if (policy?.state !== 'found') return undefined
  return compartmentOfNode(policy.spec, policy.nodeLabels ?? {}, candidatesInLedger(ledgers, metadata))
}

/** All compartments of the Skyhook. */
export const compartmentNames = ({ policy }: SkyhookView): readonly string[] =>
  policy?.state === 'found' ? compartmentsOf(policy.spec).map(({ name }) => name) : []

/**
 * How many nodes may be out for this Skyhook, or for this node's compartment of it, at once: by its budget and policy
 * and, where these depend on it, by the count of the census.
 */
export function limitOf(view: SkyhookView, ledgers: readonly Lease[], slots: readonly Slot[] = []): Limit {
  if (!view.spec.deploymentPolicy) return effectiveLimit(view.budget, countedOf(view, ledgers))
  const open = openBatchOf(view, { ledgers, slots })
  return 'unknown' in open ? open : open.limit
}

/**
 * How many nodes that join the cluster may be at work for this Skyhook at once. A number in the spec applies in
 * addition to the batches of a policy, but does not override a stopped policy: only the ledger shows whether the policy
 * has stopped.
 */
export function bootstrapLimitOf(view: SkyhookView, ledgers: readonly Lease[]): Limit {
  const { bootstrap, deploymentPolicy } = view.spec
  const limit = limitOf(view, ledgers)
  if (deploymentPolicy && typeof limit === 'object' && bootstrap?.count !== 0) return limit
  return stopReason(view, { ledgers }) === undefined
    ? bootstrapLimit(bootstrap?.count, limit, countedOf(view, ledgers))
    : 0
}

/** Joining nodes are counted apart. Where nodes are not counted, joining nodes need no budget of their own. */
export const hasBootstrapBudget = (view: SkyhookView): boolean => bootstrapLimitOf(view, []) !== 'unlimited'

/** What a LIST allows a request of this node in a compartment. */
export function admissionOf(view: SkyhookView, compartment: string, listed: Listed): Admission {
  const { ledgers, slots = [] } = listed
  const current = compartmentOf(view, ledgers)
  if (current !== undefined && current !== compartment)
    return { limit: { unknown: `the node is in compartment ${JSON.stringify(current)} now` } }
  return { limit: limitOf(view, ledgers, slots), epoch: epochOf(view, ledgers), stop: stopReason(view, listed) }
}

/** Identifies the open batch; undefined without a policy, or while the batch is not known. */
export function epochOf(view: SkyhookView, ledgers: readonly Lease[]): number | undefined {
  if (!view.spec.deploymentPolicy) return undefined
  const open = openBatchOf(view, { ledgers })
  return 'unknown' in open ? undefined : open.batch.epoch
}

const stoppedReason = 'too many batches have failed, the policy has stopped the rollout'

/** Why the policy lets no node start, not even joining nodes; undefined if it has not stopped the rollout. */
export function stopReason(view: SkyhookView, { ledgers }: Listed): string | undefined {
  if (!view.spec.deploymentPolicy) return undefined
  const open = openBatchOf(view, { ledgers })
  return !('unknown' in open) && open.batch.stopped ? stoppedReason : undefined
}

/**
 * Why the batch, and not the budget, has no place for this node; undefined where it is the budget. Without counters and
 * names, like all texts of waiting nodes.
 */
export function batchReason(view: SkyhookView, listed: Listed): string | undefined {
  const open = openBatchOf(view, listed)
  if ('unknown' in open) return undefined
  if (open.batch.stopped) return stoppedReason
  const isFinishing = listed.slots?.some(({ phase }) => phase === 'finished') === true
  return open.limit < open.ceiling || isFinishing ? 'the current batch of the policy is not finished' : undefined
}

/** What waiting nodes may expect of batches. */
export type Batches = {
  readonly open: BatchState
  /** Nodes of the batch after it, at most, if it succeeds. */
  readonly next: number
  /** Nodes of any later batch, at most. */
  readonly most: number
}

/** Undefined without a policy, while it is not known, and where no batch follows. */
export function batchesOf(view: SkyhookView, ledgers: readonly Lease[]): Batches | undefined {
  if (!view.spec.deploymentPolicy) return undefined
  const open = openBatchOf(view, { ledgers })
  if ('unknown' in open || open.batch.stopped) return undefined
  const { strategy, batch, ceiling, matched } = open
  const size = Math.min(batch.size, ceiling)
  const next = Math.min(ceiling, nextSize(strategy, size, { hasFailed: false, progressPercent: 0, matched }))
  return { open: batch, next, most: strategy.kind === 'fixed' ? next : ceiling }
}

type OpenBatch =
  | {
      readonly limit: number
      readonly ceiling: number
      readonly batch: BatchState
      readonly strategy: Strategy
      readonly matched: number
    }
  | { readonly unknown: string }

function openBatchOf(view: SkyhookView, { ledgers, slots = [] }: Listed): OpenBatch {
  const { metadata, policy } = view
  if (policy?.state === 'missing') return { unknown: `DeploymentPolicy ${view.spec.deploymentPolicy} not found` }
  if (policy?.state !== 'found') return { unknown: policy?.why ?? 'the DeploymentPolicy is not known' }
  const counted = countedOf(view, ledgers)
  if ('unknown' in counted) return counted
  const name = compartmentOf(view, ledgers)
  const compartment = compartmentsOf(policy.spec).find((each) => each.name === name)
  const { batch, matched } = counted
  if (name === undefined || compartment === undefined || batch === undefined)
    return { unknown: 'the census has not opened a batch yet' }
  const { budget, strategy } = compartment
  const ceiling = ceilingOf(budget, matched)
  const scope = skyhookScope(metadata, name, compartmentNames(view))
  return { limit: batchLimit({ batch, scope, slots, ceiling }), ceiling, batch, strategy, matched }
}

function countedOf(view: SkyhookView, ledgers: readonly Lease[]): CountedCompartment {
  const { metadata, spec, policy, nodes = Infinity } = view
  if (ledgers.length === 0) return countedScope(ledgers, { skyhook: metadata, selectorHash: '' }) // asked each decision
  const compartment = compartmentOf(view, ledgers)
  const counted = countedScope(ledgers, {
    skyhook: metadata,
    selectorHash: selectorHash(spec.nodeSelectors),
    ...(compartment !== undefined && { compartment }),
    ...(policy?.state === 'found' && {
      policy: { uid: policy.uid, generation: policy.generation, applied: appliedHash(spec) },
    }),
  })
  // the count may come from a time when the cluster was larger, and no census may be left
  return 'matched' in counted ? { ...counted, matched: Math.min(counted.matched, nodes) } : counted
}

/** Whether the answer depends on how many nodes there are. `isJoining`: by the budget for joining nodes. */
export function isShareOfNodes({ spec, budget, policy }: SkyhookView, isJoining: boolean): boolean {
  if (isJoining) return spec.bootstrap?.count === undefined
  if (!spec.deploymentPolicy) return isShare(budget)
  return policy?.state === 'found' && compartmentsOf(policy.spec).some((compartment) => isShare(compartment.budget))
}

const isShare = ({ count, percent = 0 }: Budget): boolean => count === undefined && percent > 0

/** How many nodes wait for a slot of the Skyhook; undefined while the census has not counted its nodes. */
export const queueOf = (view: SkyhookView, ledgers: readonly Lease[]): Queue | undefined =>
  queueIn(ledgers, {
    skyhook: view.metadata,
    selectorHash: selectorHash(view.spec.nodeSelectors),
    compartment: compartmentOf(view, ledgers) ?? '',
    applied: appliedHash(view.spec),
  })
