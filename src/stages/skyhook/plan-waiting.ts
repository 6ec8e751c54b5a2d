import { statusFor, type Reason } from '../../schemas/catalogue/reasons.ts'
import { hasTaint } from '../drain/node-spec.ts'
import type { PackageState } from '../model/package-state.ts'
import { requeueAt, type PlanBuilder } from '../model/plan-builder.ts'
import type { OwnSlot } from '../model/snapshot.ts'
import { drainBlocker } from './drain-status.ts'
import { membershipOf } from './joining.ts'
import { preparingImages, type SkyhookPlan } from './skyhook-plan.ts'
import { controlPlaneSlot, isControlPlaneNode, keepControlPlaneSlot } from './control-plane.ts'
import { releaseSlot, requestSlot } from './slot.ts'
import { isSpent, needsDaemonSets } from './soak.ts'

/**
 * Nothing has started on the host: the slot is asked for once some package is prepared, and given back when it is of no
 * use.
 */
export function planWaiting(
  builder: PlanBuilder,
  slot: OwnSlot | undefined,
  gate: Reason | undefined,
  states: readonly PackageState[],
): SkyhookPlan {
  const { snapshot, view } = builder
  const ready = states.filter(
    (state) => state.state === 'ready' || state.state === 'drain' || state.state === 'interrupt',
  )
  const isPreparing = states.some(({ state }) => state === 'preparing')
  const needsDrain = ready.length > 0 && ready.every((state) => state.state !== 'ready' || state.pendingInterrupt)
  const blocker = needsDrain ? drainBlocker(builder) : undefined
  const gateReason = gate ?? (blocker === 'unknown' ? undefined : blocker)
  if (slot && isSpent(builder, slot)) releaseSlot(builder, slot)
  else if (gateReason === undefined && ready.length > 0 && blocker !== 'unknown') request(builder, slot, ready)
  else if (slot && !isPreparing) releaseSlot(builder, slot)
  if (builder.record.drain?.state === 'paused')
    requeueAt(builder, Math.max(builder.record.drain.untilMs, snapshot.nowMs + 1))

  const reason = gateReason ?? waitingReason(builder, states)
  const isLate = needsDrain && view.spec.drain?.cordon === 'late'
  const isTainted = hasTaint(snapshot.node, snapshot.settings.runtimeRequiredTaint)
  const needsPods = isLate || (ready.length > 0 && isTainted) || (slot !== undefined && needsDaemonSets(view))
  const watchPods = gate === undefined && needsPods ? 'any' : 'no'
  return { builder, status: statusFor(reason.reason, false), reason, complete: false, cordon: 'off', watchPods }
}

/**
 * Whose budget counts the node has to be known. Work that starts with taking a node of the control plane out of
 * service needs both slots before it starts.
 */
function request(builder: PlanBuilder, slot: OwnSlot | undefined, ready: readonly PackageState[]): void {
  const { snapshot, view } = builder
  const membership = membershipOf(snapshot, view)
  if (membership === 'unknown') return void (builder.asksForSlot = true)
  if (slot?.isBootstrap && membership === 'in-service') return releaseSlot(builder, slot)
  const isInterrupting = ready.some((state) => state.state !== 'ready' || state.pendingInterrupt)
  const withControlPlane = isInterrupting && isControlPlaneNode(snapshot.node)
  const isMissing = withControlPlane && controlPlaneSlot(snapshot) === undefined
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (slot && isMissing && denial?.waitsFor === 'control-plane') return releaseSlot(builder, slot)
  const before = builder.actions.length
  requestSlot(builder, slot, { phase: 'working', withControlPlane, isJoining: membership === 'joining' })
  const isAsking = slot !== undefined || builder.actions.length > before
  if (!withControlPlane || !isAsking) return
  if (slot) keepControlPlaneSlot(builder, { need: 'before-cordon', mayAsk: true }, 'working')
  else builder.usesControlPlane = true
}

function waitingReason({ snapshot, view }: PlanBuilder, states: readonly PackageState[]): Reason {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (states.some(({ state }) => state === 'ready' || state === 'interrupt')) {
    return {
      reason: 'WaitingForSlot',
      message: denial?.message ?? (snapshot.slots.known ? 'requesting a slot' : snapshot.slots.why),
    }
  }
  const firstBlocked = states.find((state) => state.state === 'blocked')
  return firstBlocked ? { reason: firstBlocked.reason, message: firstBlocked.message } : preparingImages
}
