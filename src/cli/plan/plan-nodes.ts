/** What edits would do on all nodes. Pure. */
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { agentFinding } from '../explain/agent-finding.ts'
import type { NodeDetail } from '../fleet-view/node-detail.ts'
import { likenessOf } from './likeness.ts'
import { type Edit, type Fleets, type NodePlan, planNode } from './plan-node.ts'

/**
 * Returns how a node is planned. Those that are alike are rehearsed once: with twenty Skyhooks a rehearsal takes a
 * tenth of a second, and fleets have thousands of nodes.
 */
export function nodePlanner(
  fleets: Fleets,
  edits: readonly Edit[],
): (node: KubernetesNode, detail: NodeDetail) => ReadonlyMap<string, NodePlan> {
  const known = new Map<string, ReadonlyMap<string, NodePlan>>()
  return (node, detail) => {
    const likeness = likenessOf(fleets, { node, detail })
    const found = likeness === undefined ? undefined : known.get(likeness)
    if (found) {
      const own = { node: node.metadata.name, agent: agentFinding(fleets.before, node)?.message }
      return new Map([...found].map(([name, plan]) => [name, { ...plan, ...own }]))
    }
    const plans = planNode(fleets, edits, { node, detail })
    if (likeness !== undefined) known.set(likeness, plans)
    return plans
  }
}
