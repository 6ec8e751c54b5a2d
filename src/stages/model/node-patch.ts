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
