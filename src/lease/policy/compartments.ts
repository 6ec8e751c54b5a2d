/** Which compartment of a DeploymentPolicy a node belongs to. Pure. */
import { type Budget, readBudget } from '../../schemas/budget.ts'
import { defaultCompartment, type DeploymentPolicySpec } from '../../schemas/deployment-policy.ts'
import type { LabelSelector } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import { ceilingOf } from '../rule.ts'
import { readStrategy, safetyRank, type Strategy } from './strategy.ts'

export type Compartment = {
  readonly name: string
  readonly budget: Budget
  readonly strategy: Strategy
}

type NamedCompartment = Compartment & { readonly selector: LabelSelector; readonly rank: number }

/**
 * All compartments; the default one, for nodes in no other, comes last. A compartment without a strategy has that of
 * `default`.
 */
export const compartmentsOf = (spec: DeploymentPolicySpec): readonly Compartment[] => [
  ...namedCompartments(spec),
  { name: defaultCompartment, budget: readBudget(spec.default.budget), strategy: readStrategy(spec.default.strategy) },
]

function namedCompartments(spec: DeploymentPolicySpec): readonly NamedCompartment[] {
  const known = readPolicies.get(spec)
  if (known !== undefined) return known
  const { default: fallback, compartments = [] } = spec
  const named = compartments.map(({ name, selector, budget, strategy }) => ({
    name,
    selector,
    budget: readBudget(budget),
    strategy: readStrategy(strategy ?? fallback.strategy),
    rank: safetyRank(strategy),
  }))
  readPolicies.set(spec, named)
  return named
}

/** A census asks for every node; a spec that was read from the API server never changes. */
const readPolicies = new WeakMap<DeploymentPolicySpec, readonly NamedCompartment[]>()

type Labels = Readonly<Record<string, string>>

/**
 * The compartment of a node with these labels. Of several that select it: the one with the safest strategy, then the
 * smallest ceiling, then the first name. `candidatesOf` is how many nodes a compartment's selector matches, including
 * those of other compartments; undefined while they have not been counted. Undefined where that missing count decides.
 */
export function compartmentOfNode(
  spec: DeploymentPolicySpec,
  labels: Labels,
  candidatesOf: (compartment: string) => number | undefined,
): string | undefined {
  const matching = namedCompartments(spec).filter(({ selector }) => selects(selector, labels))
  const safest = Math.min(...matching.map(({ rank }) => rank))
  const [first, ...others] = matching.filter(({ rank }) => rank === safest)
  if (first === undefined || others.length === 0) return first?.name ?? defaultCompartment
  const ranked: { readonly name: string; readonly ceiling: number }[] = []
  for (const { name, budget } of [first, ...others]) {
    const candidates = candidatesOf(name)
    if (candidates === undefined && budget.count === undefined) return undefined
    ranked.push({ name, ceiling: ceilingOf(budget, candidates ?? 0) })
  }
  return ranked.toSorted((a, b) => a.ceiling - b.ceiling || (a.name < b.name ? -1 : 1))[0]?.name
}

/** How many of the nodes each named compartment's selector matches. */
export function candidatesIn(spec: DeploymentPolicySpec, nodes: readonly Labels[]): ReadonlyMap<string, number> {
  return new Map(
    namedCompartments(spec).map(({ name, selector }) => [
      name,
      nodes.filter((labels) => selects(selector, labels)).length,
    ]),
  )
}
