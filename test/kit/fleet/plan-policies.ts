/** The same run with a DeploymentPolicy for each Skyhook in place of its budget. Plans without policies stay as they are. */
import type { DeploymentPolicySpec, StrategySpec } from '../../../src/schemas/deployment-policy.ts'
import { type Chance, createChance } from './chance.ts'
import { controlPlaneLabel } from './fleet-host.ts'
import type { Plan, PlannedAction, PolicyPlan, SkyhookPlan } from './plan.ts'

/** Of the Skyhook's policy. */
export const policyName = (skyhook: string): string => `policy-of-${skyhook}`

export function withPolicies(plan: Plan): Plan {
  const chance = createChance(plan.seed, 7)
  // fifty nodes one by one would outlast the run
  const scale = plan.nodes.length > 10 ? 10 : 1
  return withPoliciesOf(plan, chance, () => drawPolicy(chance, scale))
}

/** Policies as they are drawn. */
export function withPoliciesOf(plan: Plan, chance: Chance, draw: () => DeploymentPolicySpec): Plan {
  const policies = plan.skyhooks.map(({ name }): PolicyPlan => ({ name: policyName(name), spec: draw() }))
  return {
    ...plan,
    policies,
    skyhooks: plan.skyhooks.map(withPolicy),
    actions: plan.actions.map((action) => asPolicyEdit(chance, draw, action)),
  }
}

/** And each policy gets another name once, in a rollout or after it. */
export function withRenamedPolicies(plan: Plan): Plan {
  const chance = createChance(plan.seed, 8)
  const paced = withPolicies(plan)
  const renames = plan.skyhooks.map(
    ({ name }, index): PlannedAction => ({
      id: plan.actions.length + index,
      atMs: chance.integer(...chance.pick(renamedAtMs)),
      kind: 'policy-renamed',
      skyhook: name,
      node: chance.pick(plan.nodes).name,
      detail: { name: `other-${policyName(name)}` },
    }),
  )
  return { ...paced, actions: [...paced.actions, ...renames] }
}

/** In the first rollout, or when most of them are over. */
const renamedAtMs: readonly (readonly [from: number, to: number])[] = [
  [15_000, 120_000],
  [180_000, 300_000],
]

function withPolicy({ name, spec }: SkyhookPlan): SkyhookPlan {
  const { interruptionBudget: _, ...rest } = spec
  return { name, spec: { ...rest, deploymentPolicy: policyName(name) } }
}

/** What edits a budget edits the policy. */
function asPolicyEdit(chance: Chance, draw: () => DeploymentPolicySpec, action: PlannedAction): PlannedAction {
  if (action.kind !== 'budget') return action
  return chance.isHit(0.5)
    ? { ...action, kind: 'policy', detail: { spec: draw() } }
    : { ...action, kind: 'batches-reset', detail: { text: `reset ${chance.integer(1, 1_000)}` } }
}

function drawPolicy(chance: Chance, scale: number): DeploymentPolicySpec {
  const compartments = [
    {
      name: 'control plane',
      selector: { matchExpressions: [{ key: controlPlaneLabel, operator: 'Exists' as const }] },
      budget: { count: 1 },
      ...(chance.isHit(0.5) && { strategy: drawStrategy(chance, scale) }),
    },
  ]
  return {
    default: {
      budget: chance.pick([{ count: 2 * scale }, { count: 3 * scale }, { percent: 67 }]),
      strategy: drawStrategy(chance, scale),
    },
    ...(chance.isHit(0.4) && { compartments }),
    resetBatchStateOnCompletion: chance.isHit(0.5),
  }
}

export const drawStrategy = (chance: Chance, scale: number): StrategySpec =>
  chance.pick<StrategySpec>([
    { fixed: { initialBatch: scale } },
    { fixed: { initialBatch: 2 * scale } },
    { linear: { initialBatch: scale, delta: 1 } },
    { exponential: { initialBatch: scale, growthFactor: 2, failureThreshold: 2 } },
    { fixed: { initialBatch: scale, failureThreshold: 1 } },
  ])
