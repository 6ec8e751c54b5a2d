import { finalAttempts } from '../../schemas/catalogue/reason-codes.ts'
import { statusFor, type Reason } from '../../schemas/catalogue/reason.ts'
import type { NodeStatus, SlotPhase } from '../../schemas/skyhook.ts'
import {
  blockedReason,
  cordonOf,
  type DrainStatus,
  drainStatusOf,
  drainTimedOut,
  isDrainOverdue,
  pauseDrain,
  trackDrain,
} from '../drain/drain-status.ts'
import { type Disruption, hasCordon } from '../drain/drain.ts'
import { countDueAtMs } from '../drain/pods.ts'
import { isOnlyConditionalInterruptPending } from '../interrupt/pending.ts'
import { advanceInterrupt, type InterruptStatus, otherInterrupt } from '../interrupt/run.ts'
import type { PackageState } from '../model/package-state.ts'
import { type PlanBuilder, preparingImages, requeueAt, type SkyhookPlan } from '../model/plan-builder.ts'
import type { OwnSlot } from '../model/snapshot.ts'
import { isMidChange } from '../package/next-stage.ts'
import {
  controlPlaneNeed,
  keepControlPlaneSlot,
  mayLeaveControlPlane,
  waitingForControlPlane,
} from './control-plane.ts'
import { keepSlot, mayWorkUnder, missingSlotReason, releaseSlot } from './slot.ts'

/** What started work currently does on this node: the first state that applies. */
type NodePhase =
  /** The node is not half changed and nothing can start: the slot goes to another node. */
  | { readonly phase: 'yielding'; readonly reason: Reason }
  /** Nothing new starts: paused, ignored, or the host is unusable. */
  | { readonly phase: 'paused'; readonly reason: Reason }
  | { readonly phase: 'interrupting'; readonly reason: Reason | undefined }
  /** No interrupt is possible, the drain lasts, a package failed, or its image is missing. */
  | { readonly phase: 'waiting'; readonly reason: Reason }
  | { readonly phase: 'working'; readonly reason: undefined }

export type WorkContext = {
  readonly slot: OwnSlot | undefined
  readonly gate: Reason | undefined
  readonly states: readonly PackageState[]
  readonly disruption: Disruption
  /** The running interrupt. */
  readonly activeInterrupt: InterruptStatus | undefined
}

/**
 * Work has started on the host: it continues to its end under its slot, regardless of priorities, taints and selectors.
 */
export function planWorking(builder: PlanBuilder, context: WorkContext): SkyhookPlan {
  const { slot, gate, states, disruption, activeInterrupt } = context
  const isFree = gate === undefined && mayWorkUnder(builder, slot, true)
  const mayDisrupt = isFree && mayLeaveControlPlane(builder.snapshot)
  const drain = drainStatusOf(builder, states, disruption, mayDisrupt)
  trackDrain(builder, drain.drain === 'draining')
  const interrupt = activeInterrupt ?? advanceInterrupt(builder, states, mayDisrupt && disruption.isDrained)
  const isRunning = interrupt.state === 'running' || states.some(({ state }) => state === 'running')
  const node = phaseOf(builder, context, { drain, interrupt, isRunning, isFree })
  if (slot && node.phase === 'yielding') return yieldSlot(builder, slot, node.reason)

  const { cordon, watchPods } = cordonOf(builder, drain, disruption)
  if (mayDisrupt && cordon === 'on') requestEvictions(builder, disruption)
  const drainPhase = cordon === 'on' && !disruption.isDrained ? disruption.phase : undefined
  const isLost = node.reason?.reason === 'RebootLoop'
  const slotPhase = isLost ? 'failed' : slotPhaseOf(builder, interrupt, drainPhase)
  keepSlot(builder, slot, slotPhase)
  keepControlPlaneSlot(builder, { need: controlPlaneNeed(builder, drain), mayAsk: isFree }, slotPhase)
  const isMoving = isRunning || states.some(({ state }) => state === 'drain')
  const status = statusOf(node, isMoving, slot !== undefined)
  return { builder, status, ...(node.reason && { reason: node.reason }), complete: false, cordon, watchPods }
}

type WorkStatus = {
  readonly drain: DrainStatus
  readonly interrupt: InterruptStatus
  readonly isRunning: boolean
  /** No gate, and the slot allows to continue. */
  readonly isFree: boolean
}

function phaseOf(
  builder: PlanBuilder,
  { slot, gate, states, disruption }: WorkContext,
  { drain, interrupt, isRunning, isFree }: WorkStatus,
): NodePhase {
  const blocked = blockedReason(states)
  const mayYield = slot !== undefined && !isRunning && !isHalfChanged(builder)
  const yieldFor = mayYield ? yieldReason(builder, drain, disruption, blocked) : undefined
  if (yieldFor) return { phase: 'yielding', reason: yieldFor }
  if (gate && !isGoingDown(builder, interrupt)) return { phase: 'paused', reason: gate }
  const isPreparing = states.some(({ state }) => state === 'preparing')
  const reason =
    (interrupt.state === 'none' ? undefined : interrupt.reason) ??
    missingSlotReason(builder, slot) ??
    ('reason' in drain ? drain.reason : undefined) ??
    (isFree && drain.drain === 'waiting' ? waitingForControlPlane(builder) : undefined) ??
    blocked ??
    (isPreparing ? preparingImages : undefined) ??
    (isRunning ? undefined : otherInterrupt(builder))
  if (interrupt.state === 'running') return { phase: 'interrupting', reason }
  return reason ? { phase: 'waiting', reason } : { phase: 'working', reason }
}

/** `isMoving`: something runs, or the node is being drained, while other work waits. */
function statusOf(node: NodePhase, isMoving: boolean, hasSlot: boolean): NodeStatus {
  switch (node.phase) {
    case 'yielding':
      return statusFor(node.reason.reason, false)
    case 'paused':
      return statusFor(node.reason.reason, true)
    case 'interrupting':
    case 'working':
      return 'in_progress'
    case 'waiting':
      return isMoving ? 'in_progress' : statusFor(node.reason.reason, hasSlot)
  }
}

/** When the host goes down for our reboot, the bus ends before the agent does: that does not make the host unusable. */
const isGoingDown = ({ snapshot }: PlanBuilder, interruptStatus: InterruptStatus): boolean =>
  snapshot.host.state === 'unusable' &&
  interruptStatus.state === 'running' &&
  interruptStatus.run.interrupt.type === 'reboot'

const isHalfChanged = ({ record }: PlanBuilder): boolean =>
  record.canceling !== undefined ||
  Object.values(record.packages).some((entry) => isMidChange(entry) && !isOnlyConditionalInterruptPending(entry))

/** Why a node that is not half changed gives its slot back. */
function yieldReason(
  builder: PlanBuilder,
  drain: DrainStatus,
  { reason }: Disruption,
  blocked: Reason | undefined,
): Reason | undefined {
  switch (drain.drain) {
    case 'none':
    case 'marked':
      return blocked
    case 'blocked':
      return drain.reason
    case 'waiting':
    case 'drained':
      return undefined
    case 'draining': // for too long
      if (!reason || !drainTimedOut(builder)) return undefined
      pauseDrain(builder, reason)
      return reason
  }
}

function yieldSlot(builder: PlanBuilder, slot: OwnSlot, why: Reason): SkyhookPlan {
  builder.record = { ...builder.record, lifecycle: undefined }
  // uncordon always precedes release
  if (!hasCordon(builder.snapshot, builder.view.metadata.name)) releaseSlot(builder, slot)
  return { builder, status: statusFor(why.reason, false), reason: why, complete: false, cordon: 'off', watchPods: 'no' }
}

function requestEvictions(builder: PlanBuilder, { evict, waited, recheckAtMs, phase }: Disruption): void {
  const { snapshot, view } = builder
  requeueAt(builder, recheckAtMs)
  const countAtMs = phase === 'draining' ? countDueAtMs(view.spec, snapshot, view.metadata.name) : undefined
  if (countAtMs !== undefined && countAtMs <= snapshot.nowMs) {
    builder.actions.push({ do: 'countNodes', key: 'countNodes' })
    return
  }
  if (countAtMs !== undefined) requeueAt(builder, countAtMs)
  const isForced = view.spec.drain?.onTimeout === 'delete' && isDrainOverdue(builder)
  for (const pod of isForced ? [...evict, ...waited] : evict)
    builder.actions.push({ do: 'evict', key: `evict/${pod.metadata.uid}`, pod, ...(isForced && { delete: true }) })
}

function slotPhaseOf(
  builder: PlanBuilder,
  interruptStatus: InterruptStatus,
  drainPhase: SlotPhase | undefined,
): SlotPhase {
  if (interruptStatus.state === 'running')
    return interruptStatus.run.interrupt.type === 'reboot' ? 'rebooting' : 'interrupting'
  // the node still keeps the slot while the host is half changed
  if (Object.values(builder.record.packages).some(({ restarts }) => restarts >= finalAttempts)) return 'failed'
  return drainPhase ?? 'working'
}
