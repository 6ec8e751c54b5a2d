import type { ConfigUpdates } from '../schemas/config-updates.ts'
import type { NodeStateEntry } from '../schemas/annotations.ts'
import type { NodeStatus, Skyhook } from '../schemas/skyhook.ts'

/** The `.status` of a Skyhook as the resource definition has it. `conditions` are metav1.Conditions. */
export type SkyhookStatus = {
  /** Generation of the spec that everything here was counted for. */
  readonly observedGeneration?: number
  readonly status?: NodeStatus
  readonly conditions?: readonly Condition[]
  readonly nodeState?: Readonly<Record<string, NodeState>>
  readonly nodeStatus?: Readonly<Record<string, NodeStatus>>
  readonly nodeStateTruncated?: boolean
  readonly nodesInProgress?: number
  readonly completeNodes?: string
  readonly packageList?: string
  readonly nodesSelected?: number
  readonly nodesUpdated?: number
  readonly nodesReady?: number
  readonly nodesUnavailable?: number
  readonly nodesPending?: number
  readonly compartmentStatuses?: Readonly<Record<string, CompartmentStatus>>
  /** For the original operator, should it come back: keys of a configuration that not all nodes have picked up. */
  readonly configUpdates?: ConfigUpdates
}

export type CompartmentStatus = {
  readonly matched: number
  readonly ceiling: number
  readonly inProgress: number
  readonly completed: number
  readonly progressPercent: number
  readonly batchState?: Readonly<Record<string, number | boolean>>
}

/** Entries of one node, by `name|version`. */
export type NodeState = Readonly<Record<string, NodeStateEntry>>

export type Condition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly observedGeneration?: number
  readonly lastTransitionTime: string
  readonly reason: string
  readonly message: string
}

export const statusOf = (skyhook: Skyhook): SkyhookStatus | undefined => skyhook.status as SkyhookStatus | undefined

/** Those that a person has to look at come first. */
export const statusesByUrgency: readonly NodeStatus[] = [
  'erroring',
  'blocked',
  'in_progress',
  'unknown',
  'waiting',
  'paused',
  'disabled',
  'complete',
]

/** The condition of a type, if there is one. */
export const conditionOf = (status: SkyhookStatus | undefined, type: string): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type)
