import type { NodeCondition, Taint } from '../../schemas/kubernetes.ts'

/**
 * Differences between what the Node shows and what it should; null removes. A change of the spec comes without
 * conditions.
 */
export type NodePatch = {
  readonly annotations: Readonly<Record<string, string | null>>
  readonly labels: Readonly<Record<string, string | null>>
  readonly conditions: readonly NodeCondition[]
  readonly removedConditions: readonly string[]
  /** A cordon begun or given back, in the same PATCH as its marks. */
  readonly unschedulable?: boolean
  /** The complete new list. */
  readonly taints?: readonly Taint[]
}

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
