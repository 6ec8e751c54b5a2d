import type { KubernetesNode, NodePatch, ObjectMeta } from '../schemas/kubernetes.ts'

/**
 * The Node after a patch that the API server applied to exactly this version of it. `metadata`: from the server's
 * answer.
 */
export function patchedNode(node: KubernetesNode, patch: NodePatch, metadata: ObjectMeta): KubernetesNode {
  const { unschedulable, taints, conditions, removedConditions } = patch
  const replaced = new Set([...conditions.map(({ type }) => type), ...removedConditions])
  return {
    ...node,
    metadata,
    spec: { ...node.spec, ...(unschedulable !== undefined && { unschedulable }), ...(taints && { taints }) },
    status: {
      ...node.status,
      conditions: [...(node.status?.conditions ?? []).filter(({ type }) => !replaced.has(type)), ...conditions],
    },
  }
}
