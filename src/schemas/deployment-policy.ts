import type { DeploymentPolicy as Definition } from './generated/definitions.ts'

/** The DeploymentPolicy resource by its definition in crds/, which is the authority on what is legal. */
export type DeploymentPolicy = Definition
export type DeploymentPolicySpec = DeploymentPolicy['spec']
export type CompartmentSpec = NonNullable<DeploymentPolicySpec['compartments']>[number]
/** Exactly one of the three. */
export type StrategySpec = NonNullable<CompartmentSpec['strategy']>
export type StrategyNumbers = NonNullable<StrategySpec['fixed']>

/** What is known of the policy that a Skyhook names. */
export type PolicyKnowledge =
  | {
      readonly state: 'found'
      readonly uid: string
      readonly generation: number
      readonly spec: DeploymentPolicySpec
      /** At an agent: the labels of its own Node, which decide its compartment. */
      readonly nodeLabels?: Readonly<Record<string, string>>
    }
  | { readonly state: 'missing' }
  /** `isRefused`: the API server refuses the LIST, so waiting does not help. */
  | { readonly state: 'unknown'; readonly why: string; readonly isRefused?: true }

/** The compartment of the nodes that no other one selects. The CRD reserves the name. */
export const defaultCompartment = '__default__'

/** The ledger's state of the batches of one compartment. */
export type BatchState = {
  /** Identifies the batch in slots. Only ever grows, also when the batches start over. */
  readonly epoch: number
  /** For people: number of the batch since the batches started over, from 1. */
  readonly currentBatch: number
  /** Nodes that the batch may have. */
  readonly size: number
  /** Results of the batches of this rollout. */
  readonly completed: number
  readonly failed: number
  readonly consecutiveFailures: number
  /** Too many batches in a row have failed: no node starts until the batches start over. */
  readonly stopped: boolean
  /** Nodes that the last batch had; 0 before the first one is over. */
  readonly lastBatchSize: number
  readonly lastBatchFailed: boolean
  /**
   * Nodes of the compartment that did not wait for a slot when the batch started, and so have no place in it. Only
   * waiting nodes use it, to compute how many places are left. Absent in a batch that an earlier version started.
   */
  readonly notWaiting?: number
  /**
   * Whole seconds for which the otherwise finished batch has waited for nodes that may not come. It is stored here
   * because the census may be killed before it has waited long enough. It is never compared with a clock.
   */
  readonly waitedSeconds?: number
}
