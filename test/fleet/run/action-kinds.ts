/** All faults and edits, by name. */
import type { ActionKind } from './action-kind.ts'
import { agentFaults, censusFaults } from './agent-faults.ts'
import { apiFaults } from './api-faults.ts'
import { budgetActions } from './budget-actions.ts'
import { edits, policyEdits } from './edits.ts'
import { hostFaults } from './host-faults.ts'

export const faultKinds: Readonly<Record<string, ActionKind>> = { ...agentFaults, ...hostFaults, ...apiFaults }
export const editKinds: Readonly<Record<string, ActionKind>> = edits
export const actionKinds: Readonly<Record<string, ActionKind>> = { ...faultKinds, ...editKinds }
/** No pair of a seed has one of these. */
export const policyKinds: Readonly<Record<string, ActionKind>> = { ...policyEdits, ...censusFaults, ...budgetActions }
