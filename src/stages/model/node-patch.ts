import type { NodeCondition, NodePatch, Taint } from '../../schemas/kubernetes.ts'

type MutablePatch = {
  annotations: Record<string, string | null>
  labels: Record<string, string | null>
  conditions: NodeCondition[]
  removedConditions: string[]
  unschedulable?: boolean
  taints?: readonly Taint[]
}

export const emptyPatch = (): MutablePatch => ({ annotations: {}, labels: {}, conditions: [], removedConditions: [] })

export const isEmptyPatch = ({
  annotations,
  labels,
  conditions,
  removedConditions,
  unschedulable,
  taints,
}: NodePatch): boolean =>
  Object.keys(annotations).length === 0 &&
  Object.keys(labels).length === 0 &&
  conditions.length === 0 &&
  removedConditions.length === 0 &&
  unschedulable === undefined &&
  taints === undefined

/**
 * One change of the Node. Spec and conditions cannot go into one request, and the node controller adds its taint right
 * after a cordon: a second request right behind the first would conflict. So conditions wait for the decision that sees
 * the changed spec.
 */
export function mergePatches(patches: readonly NodePatch[]): NodePatch {
  const merged = emptyPatch()
  for (const { annotations, labels, conditions, removedConditions, unschedulable, taints } of patches) {
    if (unschedulable !== undefined) merged.unschedulable = unschedulable
    if (taints !== undefined) merged.taints = taints
    Object.assign(merged.annotations, annotations)
    Object.assign(merged.labels, labels)
    merged.conditions.push(...conditions)
    merged.removedConditions.push(...removedConditions)
  }
  const hasSpec = merged.unschedulable !== undefined || merged.taints !== undefined
  return hasSpec ? { ...merged, conditions: [], removedConditions: [] } : merged
}
