import type { SkyhookConditionReason, SkyhookConditionType } from '../schemas/catalogue/conditions.ts'
import type { Condition } from './skyhook-status.ts'

/** A condition without generation and time. Type and reason are names of the catalogue. */
export type ConditionContent<Type extends SkyhookConditionType = SkyhookConditionType> = Type extends unknown
  ? Pick<Condition, 'status' | 'message'> & { readonly type: Type; readonly reason: SkyhookConditionReason<Type> }
  : never
