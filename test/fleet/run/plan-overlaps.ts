/**
 * Some runs have policies whose compartments select the same nodes, with percentages: how many nodes each selects says
 * in which of them a node is. They are drawn apart: the seeds that have none stay as they were.
 */
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import { type Chance, createChance } from '../../kit/fleet/chance.ts'
import { controlPlaneLabel } from '../../kit/fleet/fleet-host.ts'
import type { Plan, PlannedAction } from '../../kit/fleet/plan.ts'
import { drawStrategy, policyName, withPoliciesOf } from '../../kit/fleet/plan-policies.ts'
import { healAtMs, rolloutMs } from '../../kit/fleet/plan-time.ts'

export function withOverlaps(plan: Plan): Plan {
  const chance = createChance(plan.seed, 24)
  // a default of the agents is for Skyhooks without a policy
  if (!chance.isHit(0.03) || plan.defaultBudget !== undefined) return plan
  const draw = (): DeploymentPolicySpec => drawOverlaps(chance, plan.nodes.length > 10 ? 10 : 1)
  const paced = withPoliciesOf(plan, chance, draw)
  const firstId = Math.max(0, ...plan.actions.map(({ id }) => id)) + 1
  const edits = Array.from({ length: chance.integer(1, 2) }, (_, index) => ({
    ...drawEdit(chance, plan, draw),
    id: firstId + index,
  }))
  return { ...paced, actions: [...paced.actions, ...edits].toSorted((a, b) => a.atMs - b.atMs) }
}

/** What moves nodes from one compartment to another while they work. */
function drawEdit(chance: Chance, plan: Plan, draw: () => DeploymentPolicySpec): Omit<PlannedAction, 'id'> {
  const skyhook = chance.pick(plan.skyhooks).name
  const common = { atMs: chance.integer(...chance.pick(editedAtMs)), node: chance.pick(plan.nodes).name, skyhook }
  const kind = chance.pick(['policy', 'policy', 'control-plane-labeled', 'policy-renamed'] as const)
  switch (kind) {
    case 'policy':
      return { ...common, kind, detail: { spec: draw() } }
    case 'control-plane-labeled':
      return { ...common, kind, forMs: chance.integer(10_000, 120_000) }
    case 'policy-renamed':
      return { ...common, kind, detail: { name: `other-${policyName(skyhook)}` } }
  }
}

/** In the first rollout, or in one after it. */
const editedAtMs: readonly (readonly [from: number, to: number])[] = [rolloutMs, [rolloutMs[1], healAtMs - 100_000]]

const budgets = [
  { percent: 10 },
  { percent: 34 },
  { percent: 50 },
  { percent: 67 },
  { percent: 100, maxCount: 2 },
] as const

/** All nodes, and those with and without a label that comes and goes. */
const selectors = [
  { matchLabels: { pool: 'a' } },
  { matchLabels: { pool: 'a' } },
  { matchExpressions: [{ key: controlPlaneLabel, operator: 'Exists' as const }] },
  { matchExpressions: [{ key: controlPlaneLabel, operator: 'DoesNotExist' as const }] },
] as const

const drawOverlaps = (chance: Chance, scale: number): DeploymentPolicySpec => ({
  default: { budget: chance.pick(budgets), strategy: drawStrategy(chance, scale) },
  compartments: ['x', 'y', 'z'].slice(0, chance.integer(2, 3)).map((name, index) => ({
    name,
    // the first one selects all: whatever the others select, they share it
    selector: index === 0 ? selectors[0] : chance.pick(selectors),
    budget: chance.isHit(0.8) ? chance.pick(budgets) : { count: chance.integer(1, 2) },
    // of one rank, most of the time: then the counts decide
    ...(chance.isHit(0.7) && { strategy: { fixed: { initialBatch: scale * chance.integer(1, 2) } } }),
  })),
  resetBatchStateOnCompletion: chance.isHit(0.5),
})
