/**
 * Some runs have one more fault or edit that meets budgets. It is drawn apart: all else of a seed stays as it was, and
 * so do the seeds that have none.
 */
import { budgetActions, drawBudget } from '../../kit/fleet/budget-actions.ts'
import type { ActionKind } from '../../kit/fleet/action-kind.ts'
import { type Chance, createChance } from '../../kit/fleet/chance.ts'
import type { NodePlan, Plan, PlannedAction, SkyhookPlan } from '../../kit/fleet/plan.ts'
import { healAtMs, rolloutMs } from '../../kit/fleet/plan-time.ts'

type Kind = keyof typeof budgetActions

const kinds = Object.keys(budgetActions) as readonly Kind[]

export function withBudgetActions(plan: Plan): Plan {
  const chance = createChance(plan.seed, 23)
  if (!chance.isHit(0.1)) return plan
  const kind = chance.pick(kinds)
  const more = actionOf(chance, kind, plan)
  const changed = { ...plan, actions: ordered([...plan.actions, more]) }
  if (kind === 'default-budget') return withDefault(chance, changed)
  return kind === 'nodes-removed' ? withShares(chance, changed, more) : changed
}

const ordered = (actions: readonly PlannedAction[]): readonly PlannedAction[] =>
  actions.toSorted((a, b) => a.atMs - b.atMs)

function actionOf(chance: Chance, kind: Kind, plan: Plan): PlannedAction {
  const { lastsMs, draw }: ActionKind = budgetActions[kind]
  const [from, to] = chance.isHit(0.7) ? rolloutMs : [rolloutMs[0], healAtMs - 100_000]
  return {
    id: nextId(plan),
    kind,
    atMs: chance.integer(from + 500, to),
    node: chance.pick(plan.nodes).name,
    skyhook: chance.pick(plan.skyhooks).name,
    ...(lastsMs && { forMs: chance.integer(...lastsMs) }),
    ...(draw && { detail: draw(chance) }),
  }
}

const nextId = ({ actions }: Plan): number => Math.max(0, ...actions.map(({ id }) => id)) + 1

const withBudgets = (plan: Plan, budgetOf: () => SkyhookPlan['spec']['interruptionBudget']): Plan => ({
  ...plan,
  skyhooks: plan.skyhooks.map(({ name, spec }) => {
    const { interruptionBudget: _, ...rest } = spec
    const interruptionBudget = budgetOf()
    return { name, spec: { ...rest, ...(interruptionBudget && { interruptionBudget }) } }
  }),
})

const withDefault = (chance: Chance, plan: Plan): Plan => ({
  ...withBudgets(plan, () => undefined),
  defaultBudget: drawBudget(chance),
})

/** Percentages, and work for those that are left. Sometimes the fleet is larger than that of which all may count. */
function withShares(chance: Chance, plan: Plan, { id, atMs, node, skyhook }: PlannedAction): Plan {
  const isLarge = chance.isHit(0.2)
  const edit: PlannedAction = {
    id: id + 1,
    kind: 'package-version',
    atMs: atMs + chance.integer(2_000, 60_000),
    ...(node && { node }),
    ...(skyhook && { skyhook }),
    detail: { index: 0 },
  }
  const shares = withBudgets(plan, () => ({ percent: isLarge ? 10 : chance.pick([34, 50]) }))
  const nodes = isLarge ? [...plan.nodes, ...othersThan(plan.nodes, 24)] : plan.nodes
  return { ...shares, nodes, actions: ordered([...shares.actions, edit]) }
}

const othersThan = (nodes: readonly NodePlan[], count: number): readonly NodePlan[] =>
  Array.from({ length: Math.max(0, count - nodes.length) }, (_, index) => ({
    name: `host${nodes.length + index + 1}`,
    isControlPlane: false,
    pods: [],
  }))
