import { statusFor, type Reason } from '../../schemas/catalogue/reason.ts'
import { drainBlocker, drainPause } from '../drain/drain-status.ts'
import { hasRequiredTaint } from '../drain/node-spec.ts'
import { otherInterrupt } from '../interrupt/run.ts'
import { type PackageState, reasonOfBlocked } from '../model/package-state.ts'
import { type PlanBuilder, preparingImages, requeueAt, type SkyhookPlan } from '../model/plan-builder.ts'
import { isControlPlaneNode, type OwnSlot, type SlotDenial } from '../model/snapshot.ts'
import { controlPlaneSlot, keepControlPlaneSlot } from './control-plane.ts'
import { mayHavePackagePods } from './other-operator.ts'
import { isOfNoUse, membershipOf, releaseSlot, renewWhenDue, requestSlot } from './slot.ts'
import { isSpent, mayBeginUnder, needsDaemonSets } from './soak.ts'

/** A package that can be worked on, or could be once its layers are here. */
type DuePackage = Extract<PackageState, { state: 'ready' | 'checked' | 'drain' | 'interrupt' }>

const isDue = (state: PackageState): state is DuePackage =>
  state.state === 'ready' || state.state === 'checked' || state.state === 'drain' || state.state === 'interrupt'

const needsInterrupt = (due: DuePackage): boolean =>
  due.state === 'ready' || due.state === 'checked' ? due.pendingInterrupt : true

/**
 * Nothing has started on the host: the slot is requested once a package is prepared far enough, and given back when it
 * is of no use. A slot that was granted before the layers were there is kept while they are fetched: the node stays in
 * service, and a failure gives the slot to another node.
 */
export function planWaiting(
  builder: PlanBuilder,
  slot: OwnSlot | undefined,
  gate: Reason | undefined,
  states: readonly PackageState[],
): SkyhookPlan {
  const { snapshot, view } = builder
  const due = states.filter(isDue)
  const isPreparing = states.some(({ state }) => state === 'preparing')
  const needsDrain = due.length > 0 && due.every(needsInterrupt)
  const blocker = needsDrain ? drainBlocker(builder) : undefined
  const gateReason = gate ?? (blocker === 'unknown' ? undefined : blocker)
  if (slot && isSpent(builder, slot)) releaseSlot(builder, slot)
  else if (gateReason === undefined && due.length > 0 && blocker !== 'unknown') request(builder, slot, due)
  else if (slot && isPreparing) keepWhilePreparing(builder, slot)
  else if (slot) releaseSlot(builder, slot)
  // keeps its place in the line, if any: without it nothing would be prepared further
  else if (isPreparing) builder.asksForSlot = true
  requeueAt(builder, drainPause(builder)?.untilMs ?? Infinity)

  const reason =
    gateReason ?? (slot && due.length > 0 ? otherInterrupt(builder) : undefined) ?? waitingReason(builder, states)
  const isTakingOver = mayHavePackagePods(builder) && (gate === undefined || gate.reason === 'Takeover')
  const isLate = needsDrain && view.spec.drain?.cordon === 'late'
  const isTainted = hasRequiredTaint(snapshot.node, snapshot.settings.runtimeRequiredTaint)
  const needsPods =
    isLate || (isTainted && (due.length > 0 || isPreparing)) || (slot !== undefined && needsDaemonSets(view))
  const watchPods = isTakingOver || (gate === undefined && needsPods) ? 'any' : 'no'
  return { builder, status: statusFor(reason.reason, false), reason, complete: false, cordon: 'off', watchPods }
}

/** A slot that counts no capacity is of no use to a node that now has capacity. */
function keepWhilePreparing(builder: PlanBuilder, slot: OwnSlot): void {
  if (isOfNoUse(builder.snapshot, builder.view, slot)) releaseSlot(builder, slot)
  else renewWhenDue(builder, `slot/${builder.view.metadata.name}`, slot, 'preparing')
}

/**
 * The budget that counts the node must be known. Work that starts with taking a node of the control plane out of
 * service needs both slots before it starts; while layers are missing, it only needs its own.
 */
function request(builder: PlanBuilder, slot: OwnSlot | undefined, due: readonly DuePackage[]): void {
  const { snapshot, view } = builder
  const membership = membershipOf(snapshot, view)
  if (membership === 'unknown') return void (builder.asksForSlot = true)
  if (slot && isOfNoUse(snapshot, view, slot)) return releaseSlot(builder, slot)
  const isPrepared = due.some(({ state }) => state !== 'checked')
  const withControlPlane = isPrepared && due.some(needsInterrupt) && isControlPlaneNode(snapshot.node)
  const isMissing = withControlPlane && controlPlaneSlot(snapshot) === undefined
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (slot && isMissing && denial?.waitsFor === 'control-plane') return releaseSlot(builder, slot)
  const before = builder.actions.length
  const phase = isPrepared ? 'working' : 'preparing'
  const isHeldUp = !mayBeginUnder(builder, slot) || otherInterrupt(builder) !== undefined
  requestSlot(builder, slot, { phase, withControlPlane, isJoining: membership === 'joining', isHeldUp })
  const isAsking = slot !== undefined || builder.actions.length > before
  if (!withControlPlane || !isAsking) return
  if (slot) keepControlPlaneSlot(builder, { need: 'before-cordon', mayAsk: true }, 'working')
  else builder.usesControlPlane = true
}

const waitOf = (denial: SlotDenial | undefined): 'WaitingForBatch' | 'WaitingForSlot' =>
  denial?.waitsFor === 'batch' ? 'WaitingForBatch' : 'WaitingForSlot'

function waitingReason({ snapshot, view }: PlanBuilder, states: readonly PackageState[]): Reason {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (states.some(({ state }) => state === 'ready' || state === 'checked' || state === 'interrupt')) {
    return {
      reason: waitOf(denial),
      message: denial?.message ?? (snapshot.slots.known ? 'requesting a slot' : snapshot.slots.why),
    }
  }
  const firstBlocked = states.find((state) => state.state === 'blocked')
  if (firstBlocked) return reasonOfBlocked(firstBlocked)
  // a node in line waits for the others, even while it prepares for its turn
  const isInLine = denial !== undefined && denial.nextRequestAtMs > snapshot.nowMs
  return isInLine ? { reason: waitOf(denial), message: denial.message } : preparingImages
}
