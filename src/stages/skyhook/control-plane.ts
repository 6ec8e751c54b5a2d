/**
 * Of the control plane at most one node is taken out of service at a time, whatever Skyhooks and budgets say. Such a
 * node needs a second slot from before its cordon until it is back in service.
 *
 * Nobody waits in a circle: who waits for the control plane's slot may hold the Skyhook's, but who holds the control
 * plane's never waits for a Skyhook's: it gives the control plane's back.
 */
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { hasCordon } from '../drain/drain.ts'
import { isControlPlaneNode } from '../model/node-roles.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { OwnSlot, Snapshot } from '../model/snapshot.ts'
import type { DrainStatus } from './drain-status.ts'
import { bestSlot, createRecoverySlot, isOwned, isRequestDue, renewWhenDue } from './slot.ts'

export const controlPlaneSlot = ({ slots }: Snapshot): OwnSlot | undefined =>
  slots.known ? bestSlot(slots.value.filter(({ scope }) => scope === 'control-plane')) : undefined

/** The control plane allows that this node is taken out of service now, and that it is interrupted. */
export function mayLeaveControlPlane(snapshot: Snapshot): boolean {
  if (!isControlPlaneNode(snapshot.node)) return true
  const slot = controlPlaneSlot(snapshot)
  return slot !== undefined && isOwned(slot)
}

/** What started work needs of the control plane now. */
export type ControlPlaneNeed =
  | 'nothing'
  /** The node is in service, and the next thing is its cordon: it waits for the slot. */
  | 'before-cordon'
  /**
   * Whether pods are in the way of the cordon is not known yet, or the node lost the label while it is out of service:
   * a slot that the node has is kept, and none is asked for.
   */
  | 'while-held'
  /** The node is out of service already: its capacity is gone whether it counts or not. */
  | 'out-of-service'

export function controlPlaneNeed({ snapshot, view, record }: PlanBuilder, drain: DrainStatus): ControlPlaneNeed {
  const isOut = hasCordon(snapshot, view.metadata.name) || record.interrupt !== undefined
  if (!isControlPlaneNode(snapshot.node)) return isOut ? 'while-held' : 'nothing'
  if (isOut) return 'out-of-service'
  if (drain.drain === 'blocked') return drain.reason === undefined ? 'while-held' : 'nothing'
  return drain.drain === 'waiting' || drain.drain === 'draining' ? 'before-cordon' : 'nothing'
}

/** Keeps the slot, creates it again, or asks for it where the work may start to wait for it. */
export function keepControlPlaneSlot(
  builder: PlanBuilder,
  { need, mayAsk }: { readonly need: ControlPlaneNeed; readonly mayAsk: boolean },
  phase: SlotPhase,
): void {
  const { snapshot, view, actions } = builder
  if (need === 'nothing' || !snapshot.slots.known) return
  builder.usesControlPlane = true
  const key = `control-plane/${view.metadata.name}`
  const slot = controlPlaneSlot(snapshot)
  if (slot) renewWhenDue(builder, key, slot, phase)
  else if (need === 'out-of-service') createRecoverySlot(builder, { key, scope: 'control-plane', phase })
  else if (need === 'before-cordon' && mayAsk && isRequestDue(builder))
    actions.push({ do: 'acquireControlPlaneSlot', key, view, phase })
}

/** Why the node is not taken out of service yet. */
export function waitingForControlPlane({ snapshot, view }: PlanBuilder): Reason {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  const message = denial?.waitsFor === 'control-plane' ? denial.message : "requesting the control plane's slot"
  return { reason: 'WaitingForSlot', message }
}
