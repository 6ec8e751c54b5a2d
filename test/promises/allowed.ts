/** How many nodes may be out at once: the arithmetic of the promise, written apart from the product's. */
import type { Budget } from '../../src/schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { InterruptionBudget, Skyhook } from '../../src/schemas/skyhook.ts'

/** What a Skyhook allows to be out; `unknown`: it takes a count or a policy that there is not. */
export type Allowed = number | 'unlimited' | 'unknown'

/** Of so many nodes. */
function allowedBy({ count, percent, maxCount = Infinity }: Budget | InterruptionBudget, matched?: number): Allowed {
  if (typeof count === 'number') return count
  if (typeof percent !== 'number') return 'unlimited'
  if (percent === 0) return 0
  if (matched === undefined) return 'unknown'
  return Math.min(maxCount, Math.max(1, Math.floor((percent * matched) / 100 + 1e-9)))
}

/** Compartments of a policy with their budgets, that of all other nodes included. */
export const compartmentsIn = ({ default: { budget }, compartments = [] }: DeploymentPolicySpec) => [
  ...compartments,
  { name: '__default__', selector: undefined, budget },
]

/** A Skyhook as it stood, with what it depends on. */
export type Terms = {
  readonly skyhook: Skyhook
  /** That its spec names. */
  readonly policy: DeploymentPolicySpec | undefined
  /** Of Skyhooks without a budget. */
  readonly defaults: readonly Budget[]
  /** Nodes of a compartment; of all without a name. */
  readonly matched: (compartment?: string) => number | undefined
}

/** In one compartment; in all of them together if none is named. */
export function allowedOf(terms: Terms, compartment?: string): Allowed {
  const { interruptionBudget = {}, deploymentPolicy } = terms.skyhook.spec
  if (deploymentPolicy) return allowedByPolicy(terms, compartment)
  const { count, percent } = interruptionBudget
  const isOwn = typeof count === 'number' || typeof percent === 'number'
  const budgets = isOwn || terms.defaults.length === 0 ? [interruptionBudget] : terms.defaults
  return most(budgets.map((budget) => allowedBy(budget, terms.matched())))
}

function allowedByPolicy({ policy, matched }: Terms, compartment: string | undefined): Allowed {
  if (policy === undefined) return 'unknown'
  const judged = compartmentsIn(policy).filter(({ name }) => compartment === undefined || name === compartment)
  if (judged.length === 0) return 'unknown' // nobody starts in a compartment that is gone
  let sum = 0
  for (const { name, budget } of judged) {
    const allowed = allowedBy(budget, matched(name))
    if (typeof allowed !== 'number') return allowed
    sum += allowed
  }
  return sum
}

/**
 * Of joining nodes at once: a tenth of all, or as many as others, unless the spec names a number. Each compartment has
 * so many.
 */
export function allowedJoining(terms: Terms, compartment?: string): Allowed {
  const { skyhook, policy, matched } = terms
  const { count } = skyhook.spec.bootstrap ?? {}
  const isApart = compartment !== undefined && Boolean(skyhook.spec.deploymentPolicy)
  const compartments = policy === undefined ? 1 : compartmentsIn(policy).length
  if (typeof count === 'number') return isApart ? count : count * compartments
  const allowed = allowedOf(terms, compartment)
  if (typeof allowed !== 'number' || allowed === 0) return allowed
  return Math.max(allowed, Math.floor((matched(isApart ? compartment : undefined) ?? 0) / 10))
}

/** The largest. */
export const most = (all: readonly Allowed[]): Allowed =>
  all.reduce((one, other) => {
    if (one === 'unlimited' || other === 'unlimited') return 'unlimited'
    if (one === 'unknown') return other
    return other === 'unknown' ? one : Math.max(one, other)
  }, 'unknown')
