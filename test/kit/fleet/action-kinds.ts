/** All faults and edits, by name. */
import type { ActionKind } from './action-kind.ts'
import { agentFaults } from './agent-faults.ts'
import { apiFaults, lifeFaults } from './api-faults.ts'
import { budgetActions } from './budget-actions.ts'
import { censusFaults } from './census-faults.ts'
import { drainEdits, edits, lifeEdits, policyEdits } from './edits.ts'
import { hostFaults, sizeFaults } from './host-faults.ts'

export const faultKinds: Readonly<Record<string, ActionKind>> = { ...agentFaults, ...hostFaults, ...apiFaults }
export const editKinds: Readonly<Record<string, ActionKind>> = edits
export const actionKinds: Readonly<Record<string, ActionKind>> = { ...faultKinds, ...editKinds }
/** Those that `planRun` does not choose among: of policies, drains, lives of Skyhooks, budgets and the census. */
export const otherKinds: Readonly<Record<string, ActionKind>> = {
  ...policyEdits,
  ...lifeEdits,
  ...lifeFaults,
  ...censusFaults,
  ...budgetActions,
  ...drainEdits,
  ...sizeFaults,
}
