/** All faults and edits, by name. */
import type { ActionKind } from './action-kind.ts'
import { agentFaults, censusFaults } from './agent-faults.ts'
import { apiFaults, lifeFaults } from './api-faults.ts'
import { edits, lifeEdits, policyEdits } from './edits.ts'
import { hostFaults } from './host-faults.ts'

export const faultKinds: Readonly<Record<string, ActionKind>> = { ...agentFaults, ...hostFaults, ...apiFaults }
export const editKinds: Readonly<Record<string, ActionKind>> = edits
export const actionKinds: Readonly<Record<string, ActionKind>> = { ...faultKinds, ...editKinds }
/** Of plans that name them: no seed steers them into phases. */
export const policyKinds: Readonly<Record<string, ActionKind>> = {
  ...policyEdits,
  ...lifeEdits,
  ...lifeFaults,
  ...censusFaults,
}
