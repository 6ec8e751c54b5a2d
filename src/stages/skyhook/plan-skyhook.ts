import { statusKey } from '../../schemas/annotations.ts'
import { isRetrying, isRunning, type SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeStatus, SlotPhase } from '../../schemas/skyhook.ts'
import { appliedHash } from '../model/applied-hash.ts'
import { isOnlyConditionalInterruptPending } from '../interrupt/pending.ts'
import { cordonState, disruptionOf, protectedPodsBlocker, type Disruption } from '../drain/drain.ts'
import { drainPauseReason, isDrainOverdue, drainTimedOut, trackDrain, pauseDrain } from '../drain/drain-timeout.ts'
import { type PlanBuilder, newPlanBuilder, setEntry, requeueAt } from '../model/plan-builder.ts'
import { startGate, pauseReason } from './gates.ts'
import { cancelAll, stopCanceledSteps } from '../package/cancel.ts'
import { bootstrapRecord } from './bootstrap.ts'
import { advanceInterrupt, applyInterruptOutcome, type InterruptStatus } from '../interrupt/run.ts'
import { companionOf } from '../publish/read-annotations.ts'
import { advancePackage } from '../package/advance-package.ts'
import type { PackageState, Permission } from '../model/package-state.ts'
import { type Reason, statusFor } from '../../schemas/catalogue/reasons.ts'
import { startOver, withFacts } from '../model/transitions.ts'
import { notReadyReason } from '../interrupt/node-ready.ts'
import { requestSlot, keepSlot, ownSlot, releaseSlot } from './slot.ts'
import { isMidChange } from '../package/next-stage.ts'
import type { OwnSlot, SkyhookView, Snapshot } from '../model/snapshot.ts'
import type { DrainReason, PodWatch } from '../model/pods.ts'
import { isInterrupting } from '../model/host-facts.ts'

/** What one selected Skyhook does on this node now. */
export type SkyhookPlan = {
  readonly builder: PlanBuilder
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Nothing is left to do for this spec; later Skyhooks may begin. */
  readonly complete: boolean
  /** What this Skyhook wants of the cordon: its mark on the Node, off it, or as it is. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
}

/**
 * Attempts of one stage after which the slot says `failed` (it is kept all the same while the host is half changed).
 */
const failedPhaseThreshold = 3

export function planSkyhook(
  snapshot: Snapshot,
  view: SkyhookView,
  before: SkyhookRecord | undefined,
  precedingSkyhook: string | undefined,
): SkyhookPlan {
  const bootstrapped = before === undefined && !view.stale ? bootstrapRecord(snapshot, view) : undefined
  const builder = newPlanBuilder(snapshot, view, bootstrapped?.record ?? recordOfSkyhook(before, view))
  if (bootstrapped?.event) builder.events.push(bootstrapped.event)
  if (view.stale) return freeze(builder)
  const slot = ownSlot(snapshot, view)
  const hasStarted = builder.record.lifecycle !== undefined
  const gate = hasStarted ? pauseReason(view, snapshot) : startGate(view, snapshot, precedingSkyhook)
  const isFree = gate === undefined && slot?.confirmed === true
  const isCancelComplete = stopCanceledSteps(builder)
  const activeInterrupt = applyInterruptOutcome(builder, isFree)
  if (!hasStarted && !(isCancelComplete && activeInterrupt === undefined)) return awaitCanceledWork(builder, slot)
  const mayStart = isFree && activeInterrupt === undefined && !isAnotherInterrupting(snapshot, view)
  const disruption = disruptionOf(snapshot, view.metadata.name, view.spec)
  const permission = { mayStart, isDrained: disruption.isDrained }
  recordUninstallPolicies(builder)

  const names = [
    ...new Set([
      ...Object.keys(view.spec.packages ?? {}),
      ...Object.values(builder.record.packages).map(({ name }) => name),
    ]),
  ].sort()
  const isGated = gate !== undefined && !hasStarted // nothing is fetched for work that may not begin
  const states = isGated ? [] : serialOrder(builder, names, advanceAll(builder, names, permission))
  const isDone = isGated ? !hasWork(snapshot, builder, names) : states.every(({ state }) => state === 'complete')
  if (isDone && activeInterrupt === undefined && builder.record.canceling === undefined)
    return planComplete(builder, slot)

  startLifecycle(builder, states, mayStart)
  if (!builder.record.lifecycle) return planWaiting(builder, slot, gate, states)
  return planWorking(builder, { slot, gate, states, disruption, activeInterrupt })
}

/** Packages that wait for others are looked at again: those may have become complete in this very decision. */
function advanceAll(builder: PlanBuilder, names: readonly string[], permission: Permission): readonly PackageState[] {
  const states = names.map((name) => advancePackage(builder, name, permission))
  for (let hasProgressed = true; hasProgressed; ) {
    hasProgressed = false
    for (const [index, name] of names.entries()) {
      if (states[index]?.state !== 'dependency') continue
      const state = advancePackage(builder, name, permission)
      if (state.state !== 'dependency') hasProgressed = true
      states[index] = state
    }
  }
  return states
}

/** Of a serial Skyhook the node is not drained for one package while another is at work. */
function serialOrder(
  { view, record }: PlanBuilder,
  names: readonly string[],
  states: readonly PackageState[],
): readonly PackageState[] {
  if (view.spec.serial !== true) return states
  const entriesAtWork = Object.values(record.packages).filter(isRunning)
  const mustWait = (name: string | undefined): boolean => entriesAtWork.some((entry) => entry.name !== name)
  return states.map((state, index) =>
    state.state === 'drain' && mustWait(names[index]) ? { state: 'dependency' } : state,
  )
}

/** What a person's reset or another Skyhook of this name left behind has to end before anything is decided anew. */
function awaitCanceledWork(builder: PlanBuilder, slot: OwnSlot | undefined): SkyhookPlan {
  if (slot) keepSlot(builder, slot, 'working')
  const reason: Reason = { reason: 'Preparing', message: 'waiting for earlier work to finish' }
  return {
    builder,
    status: statusFor(reason.reason, slot !== undefined),
    reason,
    complete: false,
    cordon: 'as-is',
    watchPods: 'no',
  }
}

/** Steps do not start under the interrupt of another Skyhook on this node. */
const isAnotherInterrupting = (snapshot: Snapshot, view: SkyhookView): boolean =>
  Object.entries(snapshot.journal.skyhooks).some(
    ([name, { interrupt }]) => name !== view.metadata.name && isInterrupting(snapshot, interrupt),
  )

/** What the spec says last about uninstalling has to be known when the package is no longer in it. */
function recordUninstallPolicies(builder: PlanBuilder): void {
  for (const entry of Object.values(builder.record.packages)) {
    const spec = builder.view.spec.packages?.[entry.name]
    if (spec === undefined || entry.progress.state === 'retained') continue
    if (JSON.stringify(entry.uninstall) !== JSON.stringify(spec.uninstall))
      setEntry(builder, withFacts(entry, { uninstall: spec.uninstall }))
  }
}

/**
 * A Skyhook re-created under its name: what is complete stays complete, unfinished work starts over, or is uninstalled.
 */
function recordOfSkyhook(record: SkyhookRecord | undefined, view: SkyhookView): SkyhookRecord | undefined {
  if (!record) return undefined
  const { uid } = view.metadata
  if (record.uid === uid && !record.orphaned) return record
  const canceled = cancelAll(record)
  const packages = Object.entries(canceled.packages).flatMap(([key, entry]) => {
    if (entry.work === undefined) return []
    return [[key, isMidChange(entry) ? startOver(entry) : entry]]
  })
  return { ...canceled, uid, lifecycle: undefined, orphaned: undefined, packages: Object.fromEntries(packages) }
}

/** The spec at hand is old: nothing new is decided until the new one is read; what is published stays. */
function freeze(builder: PlanBuilder): SkyhookPlan {
  const status = builder.record.published?.status ?? 'waiting'
  return { builder, status, complete: false, cordon: 'as-is', watchPods: 'no' }
}

/** Asks the stage machine on a copy whether anything is due, without starting or fetching. */
function hasWork(snapshot: Snapshot, builder: PlanBuilder, names: readonly string[]): boolean {
  const dryRun = newPlanBuilder(snapshot, builder.view, builder.record)
  return names.some((name) => advancePackage(dryRun, name, { mayStart: false, isDrained: false }).state !== 'complete')
}

function planComplete(builder: PlanBuilder, slot: OwnSlot | undefined): SkyhookPlan {
  const notReady = notReadyReason(builder)
  if (notReady) {
    keepSlot(builder, slot, 'working')
    return { builder, status: 'in_progress', reason: notReady, complete: false, cordon: 'as-is', watchPods: 'no' }
  }
  const { lifecycle, reboots } = builder.record
  const applied = appliedHash(builder.view.spec)
  if (lifecycle) builder.events.push({ type: 'completed', skyhook: builder.view.metadata.name })
  // what this life of the host has completed without is not held against its later interrupts
  const compacted = compactedReboots(reboots, applied)
  builder.record = { ...builder.record, applied, lifecycle: undefined, priorReboots: undefined, reboots: compacted }
  if (slot && isPublishedComplete(builder)) releaseSlot(builder, slot)
  return { builder, status: 'complete', complete: true, cordon: 'off', watchPods: 'no' }
}

/** Whatever it took, it has led to completion: only that there was a reboot stays on record, for hosts that forget. */
const compactedReboots = (reboots: SkyhookRecord['reboots'], applied: string): SkyhookRecord['reboots'] =>
  Object.fromEntries(Object.keys(reboots).flatMap((key) => (key.startsWith(`${applied}/`) ? [[key, 1]] : [])))

/** The slot goes only after the Node shows completion: whoever takes it next must not find us half done. */
function isPublishedComplete({ record, snapshot, view }: PlanBuilder): boolean {
  const { published } = record
  const { name } = view.metadata
  if (published?.status !== 'complete' || cordonState(snapshot.node).marks.has(name)) return false
  const isShown = snapshot.node.metadata.annotations?.[statusKey(name)] === 'complete'
  return isShown && companionOf(snapshot.node, name)?.rev === published.rev
}

/** Work begins with the first stage, or with taking the node out of service for it. */
function startLifecycle(builder: PlanBuilder, states: readonly PackageState[], mayStart: boolean): void {
  const mayDrain = mayStart && isDrainRequested(states) && drainBlocker(builder) === undefined
  const hasStarted = Object.values(builder.record.packages).some((entry) => isRunning(entry) || isRetrying(entry))
  if (builder.record.lifecycle || !(hasStarted || mayDrain)) return
  const generation = builder.view.metadata.generation ?? 0
  builder.record = { ...builder.record, lifecycle: { startedAtMs: builder.snapshot.nowMs, generation } }
  builder.events.push({ type: 'began', skyhook: builder.view.metadata.name, generation })
}

/**
 * Nothing has started on the host: the slot is asked for once some package is prepared, and given back when it is of no
 * use.
 */
function planWaiting(
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
  if (gateReason === undefined && ready.length > 0 && blocker !== 'unknown') requestSlot(builder, slot, 'working')
  else if (slot && !isPreparing) releaseSlot(builder, slot)
  if (builder.record.drain?.state === 'paused')
    requeueAt(builder, Math.max(builder.record.drain.untilMs, snapshot.nowMs + 1))

  const reason = gateReason ?? waitingReason(builder, states)
  const watchPods = needsDrain && view.spec.drain?.cordon === 'late' && gate === undefined ? 'any' : 'no'
  return { builder, status: statusFor(reason.reason, false), reason, complete: false, cordon: 'off', watchPods }
}

const preparingImages: Reason = { reason: 'Preparing', message: 'fetching the package images' }

function waitingReason({ snapshot, view }: PlanBuilder, states: readonly PackageState[]): Reason {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (states.some(({ state }) => state === 'ready' || state === 'interrupt')) {
    return {
      reason: 'WaitingForSlot',
      message: denial?.message ?? (snapshot.slots.known ? 'requesting a slot' : snapshot.slots.why),
    }
  }
  return reasonOf(states.find((state) => state.state === 'blocked')) ?? preparingImages
}

/**
 * What keeps the node from being taken out of service: an earlier drain that lasted too long, or protected pods under
 * `cordon: late`.
 */
function drainBlocker(builder: PlanBuilder): DrainReason | 'unknown' | undefined {
  const late = protectedPodsBlocker(builder.snapshot, builder.view.spec)
  return drainPauseReason(builder) ?? (late === 'none' ? undefined : late)
}

const reasonOf = (state: Reason | undefined): Reason | undefined =>
  state && { reason: state.reason, message: state.message }

const isDrainRequested = (states: readonly PackageState[]): boolean =>
  states.some(({ state }) => state === 'drain' || state === 'interrupt') &&
  !states.some(({ state }) => state === 'preparing')

type WorkContext = {
  readonly slot: OwnSlot | undefined
  readonly gate: Reason | undefined
  readonly states: readonly PackageState[]
  readonly disruption: Disruption
  /** The interrupt under way. */
  readonly activeInterrupt: InterruptStatus | undefined
}

/**
 * Work has begun on the host: it goes on to its end under its slot, whatever priorities, taints or selectors say now.
 */
function planWorking(
  builder: PlanBuilder,
  { slot, gate, states, disruption, activeInterrupt }: WorkContext,
): SkyhookPlan {
  const isFree = gate === undefined && slot?.confirmed === true
  const isDrainDue = isDrainRequested(states) || states.some(({ state }) => state === 'interrupt') // an interrupt owed waits for nobody's image
  const blocker = isDrainDue ? drainBlocker(builder) : undefined
  const isDraining = disruption.isMarked || (isFree && isDrainDue && blocker === undefined)
  const waitsForDrain = isDrainDue && !disruption.isDrained
  trackDrain(builder, waitsForDrain && isDraining)
  const interruptStatus = activeInterrupt ?? advanceInterrupt(builder, states, isFree && disruption.isDrained)

  const blockedStates = states.filter((state) => state.state === 'blocked')
  const blocked = blockedStates.find(({ atPreparation }) => !atPreparation) ?? blockedStates[0] // what failed on the host is the worse news
  const isRunning = interruptStatus.state === 'running' || states.some(({ state }) => state === 'running')
  const why =
    slot && !isRunning && !isHalfChanged(builder)
      ? yieldReason(builder, {
          isDrainDue,
          isDraining,
          blocker: blocker === 'unknown' ? undefined : blocker,
          blocked,
          reason: disruption.reason,
        })
      : undefined
  if (slot && why) return yieldSlot(builder, slot, why)
  if (isFree && isDraining) requestEvictions(builder, disruption)

  keepSlot(
    builder,
    slot,
    phaseOf(builder, interruptStatus, isDraining && !disruption.isDrained ? disruption.phase : undefined),
  )
  const gateReason = isGoingDown(builder, interruptStatus) ? undefined : gate
  const reason =
    gateReason ??
    (interruptStatus.state === 'none' ? undefined : interruptStatus.reason) ??
    (waitsForDrain ? (disruption.reason ?? (blocker === 'unknown' ? undefined : blocker)) : undefined) ??
    reasonOf(blocked) ??
    preparingReason(states)
  const isMoving = isRunning || states.some(({ state }) => state === 'drain')
  const status = gateReason
    ? statusFor(gateReason.reason, true)
    : reason && !isMoving
      ? statusFor(reason.reason, slot !== undefined)
      : 'in_progress'
  const watchPods: PodWatch = isDraining ? disruption.watchPods : blocker !== undefined ? 'any' : 'no'
  return { builder, status, ...(reason && { reason }), complete: false, cordon: isDraining ? 'on' : 'as-is', watchPods }
}

/**
 * The bus ends before the agent does when the host goes down for a reboot of ours: that is no trouble of the host's.
 */
const isGoingDown = ({ snapshot }: PlanBuilder, interruptStatus: InterruptStatus): boolean =>
  snapshot.host.state === 'unusable' &&
  interruptStatus.state === 'running' &&
  interruptStatus.run.interrupt.type === 'reboot'

const isHalfChanged = ({ record }: PlanBuilder): boolean =>
  record.canceling !== undefined ||
  Object.values(record.packages).some((entry) => isMidChange(entry) && !isOnlyConditionalInterruptPending(entry))

const preparingReason = (states: readonly PackageState[]): Reason | undefined =>
  states.some(({ state }) => state === 'preparing') ? preparingImages : undefined

type DrainContext = {
  readonly isDrainDue: boolean
  readonly isDraining: boolean
  readonly blocker: Reason | undefined
  readonly blocked: Reason | undefined
  readonly reason: DrainReason | undefined
}

/**
 * Why a node on which nothing is half changed gives its slot back: nothing can start, or its drain has lasted too long.
 */
function yieldReason(
  builder: PlanBuilder,
  { isDrainDue, isDraining, blocker, blocked, reason }: DrainContext,
): Reason | undefined {
  if (!isDrainDue) return reasonOf(blocked)
  if (!isDraining) return blocker
  if (!reason || !drainTimedOut(builder)) return undefined
  pauseDrain(builder, reason)
  return reason
}

function yieldSlot(builder: PlanBuilder, slot: OwnSlot, why: Reason): SkyhookPlan {
  builder.record = { ...builder.record, lifecycle: undefined }
  if (!cordonState(builder.snapshot.node).marks.has(builder.view.metadata.name)) releaseSlot(builder, slot) // uncordon always precedes release
  return { builder, status: statusFor(why.reason, false), reason: why, complete: false, cordon: 'off', watchPods: 'no' }
}

function requestEvictions(builder: PlanBuilder, { evict, recheckAtMs }: Disruption): void {
  const { drain } = builder.view.spec
  requeueAt(builder, recheckAtMs)
  if (drain?.singleNode === 'skip' && builder.snapshot.singleNode === undefined) {
    builder.actions.push({ do: 'countNodes', key: 'countNodes' })
    return
  }
  const isForced = drain?.onTimeout === 'delete' && isDrainOverdue(builder)
  for (const pod of evict)
    builder.actions.push({ do: 'evict', key: `evict/${pod.metadata.uid}`, pod, ...(isForced && { delete: true }) })
}

function phaseOf(builder: PlanBuilder, interruptStatus: InterruptStatus, drainPhase: SlotPhase | undefined): SlotPhase {
  if (interruptStatus.state === 'running')
    return interruptStatus.run.interrupt.type === 'reboot' ? 'rebooting' : 'interrupting'
  if (Object.values(builder.record.packages).some(({ restarts }) => restarts >= failedPhaseThreshold)) return 'failed'
  return drainPhase ?? 'working'
}
