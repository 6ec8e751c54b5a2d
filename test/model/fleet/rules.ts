/** What the model does in the place of code that it does not run. A wrong rule replaces one of them. */
import type { Slot } from '../../../src/lease/slot.ts'

export const productRules = {
  /** What a LIST shows of the slots; `isSilent`: the agent of its holder is not running. */
  isListed: (_slot: Slot, _isSilent: boolean): boolean => true,
  /** After an unanswered CREATE only the same name is created again. */
  remembersUnanswered: true,
  /** After an unanswered DELETE the slot is in doubt. */
  doubtsReleases: true,
  /** Own slots show up however they came to be there. */
  followsOwnSlots: true,
}

export type FleetRules = Readonly<typeof productRules>
