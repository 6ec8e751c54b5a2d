/**
 * At most one node of the control plane is taken out of service at a time, regardless of Skyhooks and budgets. Such a
 * node needs a second slot from before its cordon until it is back in service.
 *
 * This cannot deadlock: a node that waits for the control plane's slot may hold the Skyhook's, but a node that holds
 * the control plane's slot never waits for a Skyhook's. It gives the control plane's slot back.
 */
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { hasCordon } from '../drain/drain.ts'
import { areStaticPodsRecorded } from '../interrupt/static-pods.ts'
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
  return slot !== undefined && isOwned(slot) && areStaticPodsRecorded(snapshot)
}

/** What started work currently needs of the control plane. */
export type ControlPlaneNeed =
  | 'nothing'
  /** The node is in service, and its cordon comes next: it waits for the slot. */
  | 'before-cordon'
  /**
   * It is not known yet whether pods block the cordon, or the node lost the label while it is out of service: the node
   * keeps its slot if it has one, and requests none.
   */
  | 'while-held'
  /** The node is out of service already: its capacity is gone with or without a slot. */
  | 'out-of-service'

export function controlPlaneNeed({ snapshot, view, record }: PlanBuilder, drain: DrainStatus): ControlPlaneNeed {
  const isOut = hasCordon(snapshot, view.metadata.name) || record.interrupt !== undefined
  if (!isControlPlaneNode(snapshot.node)) return isOut ? 'while-held' : 'nothing'
  if (isOut) return 'out-of-service'
  if (drain.drain === 'blocked') return drain.reason === undefined ? 'while-held' : 'nothing'
  return drain.drain === 'waiting' || drain.drain === 'draining' ? 'before-cordon' : 'nothing'
}

/** Keeps the slot, creates it again, or requests it where the work may start to wait for it. */
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
  if (controlPlaneSlot(snapshot) !== undefined && !areStaticPodsRecorded(snapshot))
    return { reason: 'WaitingForSlot', message: 'recording the static pods of this node' }
  const message = denial?.waitsFor === 'control-plane' ? denial.message : "requesting the control plane's slot"
  return { reason: 'WaitingForSlot', message }
}
