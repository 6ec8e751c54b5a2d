/** All faults and edits, by name. */
import type { ActionKind } from './action-kind.ts'
import { agentFaults, censusFaults } from './agent-faults.ts'
import { apiFaults } from './api-faults.ts'
import { drainEdits, edits, policyEdits } from './edits.ts'
import { hostFaults, sizeFaults } from './host-faults.ts'

export const faultKinds: Readonly<Record<string, ActionKind>> = { ...agentFaults, ...hostFaults, ...apiFaults }
export const editKinds: Readonly<Record<string, ActionKind>> = edits
export const actionKinds: Readonly<Record<string, ActionKind>> = { ...faultKinds, ...editKinds }
/** Of some plans alone: no turn of a seed is theirs. */
export const policyKinds: Readonly<Record<string, ActionKind>> = {
  ...policyEdits,
  ...censusFaults,
  ...drainEdits,
  ...sizeFaults,
}
