import type { NodeStateEntry } from '../../schemas/annotations.ts'
import type { SkyhookConditionReason, SkyhookConditionType } from '../../schemas/catalogue/conditions.ts'
import type { Skyhook as Definition } from '../../schemas/generated/definitions.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'

type DefinedStatus = NonNullable<Definition['status']>
type DefinedEntry = NonNullable<DefinedStatus['nodeState']>[string][string]
type DefinedCompartment = NonNullable<DefinedStatus['compartmentStatuses']>[string]

/**
 * The `.status` of a Skyhook as the census writes it: entries and compartments in full, without what only the operator
 * writes.
 */
export type SkyhookStatus = Omit<
  DefinedStatus,
  'nodeState' | 'compartmentStatuses' | 'nodeBootIds' | 'nodePriority'
> & {
  readonly nodeState?: Readonly<Record<string, NodeState>>
  readonly compartmentStatuses?: Readonly<Record<string, CompartmentStatus>>
}

export type CompartmentStatus = Required<Omit<DefinedCompartment, 'batchState'>> &
  Pick<DefinedCompartment, 'batchState'>

/** Entries of one node, by `name|version`, that fit the definition. */
export type NodeState = Readonly<Record<string, NodeStateEntry & DefinedEntry>>

/** A metav1.Condition. */
export type Condition = NonNullable<DefinedStatus['conditions']>[number]

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

/** A condition without generation and time. Type and reason are names of the catalogue. */
export type ConditionContent<Type extends SkyhookConditionType = SkyhookConditionType> = Type extends unknown
  ? Pick<Condition, 'status' | 'message'> & { readonly type: Type; readonly reason: SkyhookConditionReason<Type> }
  : never
