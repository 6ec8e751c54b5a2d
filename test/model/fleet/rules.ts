/** The functions under test: the product's own. A wrong rule replaces one of them. */
import { changeSince, isAdmissionCurrent } from '../../../src/daemon/slots/confirmation.ts'
import { admit, refusalOf } from '../../../src/lease/admission.ts'
import type { Slot } from '../../../src/lease/slot.ts'
import { decide } from '../../../src/stages/decide.ts'

export const productRules = {
  decide,
  admit,
  refusalOf,
  changeSince,
  isAdmissionCurrent,
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
