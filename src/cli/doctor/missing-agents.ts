import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import { silentAfterMs } from '../../stages/skyhook/gates.ts'
import { agentFinding } from '../explain/agent-finding.ts'
import { slowStartMs } from '../explain/agent-pod.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { valueOr } from '../fleet-view/readable.ts'

type Fleet = FleetView<KubernetesNode>

/**
 * The nodes without an agent at this moment, except for nodes that are joining and nodes that must not have one. During
 * a rolling update a node has no agent for a while: it counts when two looks find it so.
 */
export function nodesWithoutAgent(fleet: Fleet): readonly string[] {
  const { agents, nodes, skyhooks, takenAtMs } = fleet
  if (!agents.known || !nodes.known) return []
  return nodes.value.flatMap((node) => {
    const found = agentFinding(fleet, node)
    const isNew = takenAtMs - Date.parse(node.metadata.creationTimestamp ?? '') < silentAfterMs
    if (found?.cause !== 'no-agent' || isNew || isLeaving(fleet, node)) return []
    const isExcluded = found.objects.some(({ kind }) => kind === 'DaemonSet')
    const isSelected =
      skyhooks.known && skyhooks.value.some(({ spec }) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    return !isExcluded || isSelected ? [node.metadata.name] : []
  })
}

/** Its agent is still in its grace period. */
const isLeaving = ({ agents, takenAtMs }: Fleet, { metadata }: KubernetesNode): boolean =>
  valueOr(agents, []).some(
    ({ node, deletedByMs }) =>
      node === metadata.name && deletedByMs !== undefined && takenAtMs - deletedByMs < slowStartMs / 2,
  )
