/** Makes a failing plan as small as it still fails by the same rule. */
import type { Plan, PlannedAction } from '../../kit/fleet/plan.ts'

/**
 * `fails` says whether a plan still fails. Actions, Skyhooks, nodes and pods are taken away, one by one or by halves,
 * until nothing can be, or until `isOver` says so.
 */
export async function shrinkPlan(
  plan: Plan,
  fails: (smaller: Plan) => Promise<boolean>,
  isOver: () => boolean,
): Promise<Plan> {
  let smallest = plan
  for (let hasShrunk = true; hasShrunk && !isOver(); ) {
    hasShrunk = false
    for (const candidate of smallerPlans(smallest)) {
      if (isOver()) break
      if (!(await fails(candidate))) continue
      smallest = candidate
      hasShrunk = true
      break
    }
  }
  return smallest
}

function* smallerPlans(plan: Plan): Generator<Plan> {
  const { actions, nodes, skyhooks } = plan
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < actions.length; from += size)
      yield { ...plan, actions: [...actions.slice(0, from), ...actions.slice(from + size)] }
  if (skyhooks.length > 1)
    for (const { name } of skyhooks)
      yield {
        ...plan,
        skyhooks: skyhooks.filter((one) => one.name !== name),
        actions: actions.filter(({ skyhook }) => skyhook !== name),
      }
  // the last ones first: the names of the others keep their places in the order of events
  for (const { name } of nodes.length > 1 ? nodes.toReversed() : [])
    yield {
      ...plan,
      nodes: nodes.filter((node) => node.name !== name),
      actions: actions.filter(({ node }) => node !== name),
    }
  for (const one of nodes)
    if (one.pods.length > 0) yield { ...plan, nodes: nodes.map((node) => (node === one ? { ...one, pods: [] } : node)) }
  for (const action of actions) {
    const { during, ...timed } = action
    if (during === undefined && action.forMs !== undefined && action.forMs > 2_000) {
      const halved: PlannedAction = { ...timed, forMs: Math.floor(action.forMs / 2) }
      yield { ...plan, actions: actions.map((one) => (one === action ? halved : one)) }
    }
  }
}
