/** The control plane's slot: one node of the whole cluster at a time, whatever Skyhook works on it. */
import { type Admission, admit } from './admission.ts'
import { controlPlaneScope } from './names.ts'
import { listWithControlPlane, type Leases } from './slot-reads.ts'
import type { Slot } from './slot.ts'
import { type SlotRequest, take, waiting } from './slot-acquisition.ts'
import { type AcquireOutcome, tryList } from './slot-creation.ts'

/**
 * Asks for a Skyhook's slot for work that starts with taking a node of the control plane out of service: it needs the
 * control plane's slot first. Nothing is created unless one LIST admits both, so that no node holds the control plane's
 * slot without a slot of its Skyhook. `missing` names the slot that was not granted.
 */
export async function acquireWithControlPlane(
  leases: Leases,
  request: SlotRequest,
  signal?: AbortSignal,
): Promise<{
  readonly controlPlane: Slot | undefined
  readonly answer: AcquireOutcome
  readonly missing: 'control-plane' | 'skyhook' | undefined
}> {
  const guard: SlotRequest = { ...request, ...controlPlaneAsking, unansweredIndex: undefined }
  const listed = await tryList(() => listWithControlPlane(leases, request.scope, signal), signal)
  if ('error' in listed) return { controlPlane: undefined, answer: listed, missing: 'skyhook' }
  const { ofSkyhook, ofControlPlane } = listed
  const verdict = admit(ofSkyhook, request)
  if (verdict.verdict === 'wait')
    return { controlPlane: undefined, answer: waiting(verdict.reason, ofSkyhook), missing: 'skyhook' }
  const guarded = await take(leases, guard, ofControlPlane, signal)
  if (guarded.outcome !== 'held') return { controlPlane: undefined, answer: guarded, missing: 'control-plane' }
  const answer = await take(leases, request, ofSkyhook, signal)
  return { controlPlane: guarded.slot, answer, missing: answer.outcome === 'held' ? undefined : 'skyhook' }
}

/** How a node asks for the control plane's slot. */
export const controlPlaneAsking = {
  scope: controlPlaneScope,
  admissionFrom: (): Admission => ({ limit: 1 }),
} as const
