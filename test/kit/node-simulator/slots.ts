/** What becomes of requests for slots: as the test arranged it, without the rule of the budget. */
import type { SlotPhase } from '../../../src/schemas/skyhook.ts'
import type { Action } from '../../../src/stages/model/plan.ts'
import type { OwnSlot, SkyhookView } from '../../../src/stages/model/snapshot.ts'
import { versionsOf } from '../../../src/stages/skyhook/slot.ts'
import type { NodeState } from './node-state.ts'

export const isScopeHeld = ({ slots }: NodeState): boolean => slots.some(({ scope }) => scope === 'control-plane')

export function acquireSlot(
  simulated: NodeState,
  action: Extract<Action, { do: 'acquireSlot' | 'acquireControlPlaneSlot' | 'createRecoverySlot' }>,
): boolean {
  const { do: kind, view, phase } = action
  const { name: skyhook } = view.metadata
  const isRecovery = kind === 'createRecoverySlot'
  const needsControlPlane =
    kind === 'acquireControlPlaneSlot' || (kind === 'acquireSlot' && action.withControlPlane && !isScopeHeld(simulated))
  const deny = (message: string, waitsFor?: 'control-plane'): true => {
    const timesMs = { nextRequestAtMs: simulated.nowMs + 10_000, sinceMs: simulated.nowMs }
    const denial = { message, ...timesMs, ...(waitsFor && { waitsFor }) }
    simulated.slotDenials.set(skyhook, denial)
    return true // the answer wakes the agent
  }
  if (needsControlPlane && !simulated.isControlPlaneFree) return deny('another control-plane node', 'control-plane')
  if (kind === 'acquireSlot' && !isGranted(simulated, action.isJoining)) return deny('the budget of 1 node is used up')
  simulated.slotDenials.delete(skyhook)
  if (needsControlPlane || (isRecovery && action.scope === 'control-plane'))
    grant(simulated, view, phase, 'control-plane', isRecovery)
  if (kind === 'acquireSlot' || (isRecovery && action.scope === 'skyhook'))
    grant(simulated, view, phase, 'skyhook', isRecovery, kind === 'acquireSlot' && action.isJoining)
  return true
}

const isGranted = ({ areSlotsGranted, areJoiningSlotsGranted = areSlotsGranted }: NodeState, isJoining: boolean) =>
  isJoining ? areJoiningSlotsGranted : areSlotsGranted

/** The budget of this moment would not grant it: it is given back. */
export function confirmSlot(simulated: NodeState, { slot, view }: Extract<Action, { do: 'confirmSlot' }>): boolean {
  if (simulated.lostLeases.has(slot.uid)) return loseSlot(simulated, slot)
  if (simulated.areSlotsConfirmed)
    return updateSlot(simulated, slot, { ownership: 'confirmed', admittedUnder: versionsOf(view) })
  const nextRequestAtMs = simulated.nowMs + 1_000
  simulated.slotDenials.set(view.metadata.name, {
    message: 'the budget fell',
    nextRequestAtMs,
    sinceMs: simulated.nowMs,
  })
  return releaseSlot(simulated, slot)
}

export function releaseSlot(simulated: NodeState, slot: OwnSlot): boolean {
  if (!simulated.slots.some(({ uid }) => uid === slot.uid)) return false
  if (!simulated.lostLeases.has(slot.uid)) simulated.observer.slotReleased?.(slot)
  return loseSlot(simulated, slot)
}

export function loseSlot(simulated: NodeState, { uid }: OwnSlot): boolean {
  simulated.slots = simulated.slots.filter((slot) => slot.uid !== uid)
  return true
}

export function updateSlot(simulated: NodeState, { uid }: OwnSlot, change: Partial<OwnSlot>): boolean {
  simulated.slots = simulated.slots.map((slot) =>
    slot.uid === uid ? { ...slot, ...change, renewedAtMs: simulated.nowMs } : slot,
  )
  return true
}

function grant(
  simulated: NodeState,
  view: SkyhookView,
  phase: SlotPhase,
  scope: OwnSlot['scope'],
  isRecovery: boolean,
  isBootstrap = false,
): void {
  const { metadata } = view
  const isOfSkyhook = scope === 'skyhook'
  const end = isRecovery ? 'node' : isBootstrap ? 'bootstrap-0' : 'slot-0'
  const lease = `${isOfSkyhook ? metadata.uid : scope}.${end}`
  const uid = `lease-${++simulated.leases}`
  const slot: OwnSlot = {
    scope,
    skyhook: isOfSkyhook ? metadata.name : '',
    skyhookUid: isOfSkyhook ? metadata.uid : undefined,
    lease,
    uid,
    phase,
    ownership: 'owned',
    ...(!isRecovery && isOfSkyhook && { admittedUnder: versionsOf(view) }),
    ...(isBootstrap && { isBootstrap }),
    isFormer: false,
    renewedAtMs: simulated.nowMs,
  }
  simulated.slots = [...simulated.slots.filter((other) => other.lease !== lease), slot]
}

/** A slot that no request of this agent asked for: created late, or brought back by a restored etcd. */
export function addForeignSlot(simulated: NodeState, name: string, scope: OwnSlot['scope']): void {
  const view = simulated.views.get(name)
  if (!view) return
  simulated.leases++
  const own = { skyhook: name, skyhookUid: view.metadata.uid }
  const slot: OwnSlot = {
    scope,
    ...(scope === 'skyhook' ? own : { skyhook: '', skyhookUid: undefined }),
    lease: `${scope}-${simulated.leases}`,
    uid: `lease-${simulated.leases}`,
    phase: 'working',
    ownership: 'seen',
    isFormer: false,
    renewedAtMs: 0,
  }
  simulated.slots = [...simulated.slots, slot]
}
