import type { LabelSelector, ObjectMeta } from './kubernetes.ts'

/** The DeploymentPolicy resource as the API server stores it; the CRD in crds/ is the authority on what is legal. */
export type DeploymentPolicy = { readonly metadata: ObjectMeta; readonly spec: DeploymentPolicySpec }

export type DeploymentPolicySpec = {
  readonly default: { readonly budget: CompartmentBudget; readonly strategy: StrategySpec }
  readonly compartments?: readonly CompartmentSpec[]
  readonly resetBatchStateOnCompletion?: boolean | null
}

export type CompartmentSpec = {
  readonly name: string
  readonly selector: LabelSelector
  readonly budget: CompartmentBudget
  /** Absent: that of `default`. */
  readonly strategy?: StrategySpec
}

/** Exactly one of percent and count. */
export type CompartmentBudget = {
  readonly percent?: number | null
  readonly count?: number | null
  readonly maxCount?: number
}

/** Exactly one of the three. */
export type StrategySpec = {
  readonly fixed?: StrategyNumbers
  readonly linear?: StrategyNumbers & { readonly delta?: number | null }
  readonly exponential?: StrategyNumbers & { readonly growthFactor?: number | null }
}

export type StrategyNumbers = {
  readonly initialBatch?: number | null
  readonly batchThreshold?: number | null
  readonly failureThreshold?: number | null
  readonly safetyLimit?: number | null
}

/** What a Skyhook has of the policy that it names. */
export type PolicyKnowledge =
  | {
      readonly state: 'found'
      readonly uid: string
      readonly generation: number
      readonly spec: DeploymentPolicySpec
      /** At an agent: the labels of its own Node, which say in which compartment it is. */
      readonly nodeLabels?: Readonly<Record<string, string>>
    }
  | { readonly state: 'missing' }
  /** `isRefused`: not for the moment, the API server refuses the LIST. */
  | { readonly state: 'unknown'; readonly why: string; readonly isRefused?: true }

/** The compartment of the nodes that no other one selects. The CRD keeps the name free. */
export const defaultCompartment = '__default__'
