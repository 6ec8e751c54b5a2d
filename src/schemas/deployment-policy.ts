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
