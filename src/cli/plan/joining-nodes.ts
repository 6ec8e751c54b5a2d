/** Which nodes join the cluster: they are closed for pods, and none that must leave is there. Pure. */
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { groupPods, podsInTheWay } from '../../stages/drain/pods.ts'
import type { Pod } from '../../stages/model/pods.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import type { NodePlan } from './plan-node.ts'

/** Names of nodes. `possible`: their pods may not be read. */
export type JoiningNodes = { readonly certain: ReadonlySet<string>; readonly possible: ReadonlySet<string> }

/** `pods`: of all nodes that are closed. `skipNamespaces`: of the agents, whose pods are never drained. */
export function joiningNodes(
  plans: readonly NodePlan[],
  rules: Pick<SkyhookSpec, 'podNonInterruptLabels' | 'drain'>,
  pods: Known<readonly Pod[]>,
  skipNamespaces: readonly string[],
): JoiningNodes {
  const closed = new Set(plans.flatMap(({ isJoining, node }) => (isJoining ? [node] : [])))
  if (!pods.known) return { certain: new Set(), possible: closed }
  const inTheWay = podsInTheWay(groupPods(pods.value, rules, { skipNamespaces }))
  return { certain: closed.difference(new Set(inTheWay.map(({ spec }) => spec?.nodeName ?? ''))), possible: new Set() }
}
