/** All faults and edits, by name. */
import type { ActionKind } from './action-kind.ts'
import { agentFaults } from './agent-faults.ts'
import { apiFaults, lifeFaults } from './api-faults.ts'
import { budgetActions } from './budget-actions.ts'
import { censusFaults } from './census-faults.ts'
import { edits, lifeEdits, policyEdits } from './edits.ts'
import { hostFaults } from './host-faults.ts'

export const faultKinds: Readonly<Record<string, ActionKind>> = { ...agentFaults, ...hostFaults, ...apiFaults }
export const editKinds: Readonly<Record<string, ActionKind>> = edits
export const actionKinds: Readonly<Record<string, ActionKind>> = { ...faultKinds, ...editKinds }
/** Those that `planRun` does not choose among: of plans with policies alone, of Skyhooks that come and go, of budgets, of the census. */
export const otherKinds: Readonly<Record<string, ActionKind>> = {
  ...policyEdits,
  ...lifeEdits,
  ...lifeFaults,
  ...censusFaults,
  ...budgetActions,
}
