/** The functions under test: the product's own, or one of them replaced by a wrong one. */
import { changeSince, isAdmissionCurrent } from '../../../src/daemon/slots/confirmation.ts'
import { admit, refusalOf } from '../../../src/lease/admission.ts'
import type { Slot } from '../../../src/lease/slot.ts'
import { decide } from '../../../src/stages/decide.ts'
import type { Decide } from '../../kit/node-simulator/node-simulator.ts'

export type FleetRules = {
  readonly decide: Decide
  readonly admit: typeof admit
  readonly refusalOf: typeof refusalOf
  readonly changeSince: typeof changeSince
  readonly isAdmissionCurrent: typeof isAdmissionCurrent
  /** What a LIST shows of the slots; `isSilent`: the agent of its holder is not running. */
  readonly isListed: (slot: Slot, isSilent: boolean) => boolean
  /** After an unanswered CREATE only the same name is created again. */
  readonly remembersUnanswered: boolean
  /** After an unanswered DELETE the slot is in doubt. */
  readonly doubtsReleases: boolean
  /** Own slots show up however they came to be there. */
  readonly followsOwnSlots: boolean
}

export const productRules: FleetRules = {
  decide,
  admit,
  refusalOf,
  changeSince,
  isAdmissionCurrent,
  isListed: () => true,
  remembersUnanswered: true,
  doubtsReleases: true,
  followsOwnSlots: true,
}
