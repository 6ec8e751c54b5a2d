import { type Reason, statusFor } from '../../schemas/catalogue/reason.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import { isRunning } from '../../schemas/package-record.ts'
import { isEqual, ownValue } from '../../schemas/json.ts'
import { publishedOf } from '../../schemas/published.ts'
import { isPastWork } from '../../schemas/skyhook.ts'
import { packageReasons } from '../drain/drain-status.ts'
import { disruptionOf, hasCordon } from '../drain/drain.ts'
import { applyInterruptOutcome, otherInterrupt } from '../interrupt/run.ts'
import { appliedHash, completionHash } from '../model/package-inputs.ts'
import type { PackageState, Permission } from '../model/package-state.ts'
import { newPlanBuilder, type PlanBuilder, type SkyhookPlan, setEntry } from '../model/plan-builder.ts'
import type { OwnSlot, PreparationDepth, SkyhookView, Snapshot } from '../model/snapshot.ts'
import { withFacts } from '../model/transitions.ts'
import { advancePackage } from '../package/advance-package.ts'
import { stopCanceledSteps } from '../package/cancel.ts'
import { bootstrapRecord, recordOfSkyhook } from './adoption.ts'
import { controlPlaneNeed, keepControlPlaneSlot, mayLeaveControlPlane, staticPodsReason } from './control-plane.ts'
import { resumeLifecycle, startLifecycle } from './departure.ts'
import { pauseReason, startGate } from './gates.ts'
import { otherOperatorGate, packagePodGate } from './other-operator.ts'
import { planWaiting } from './plan-waiting.ts'
import { planWorking } from './plan-working.ts'
import { isOfNoUse, keepSlot, mayWorkUnder, membershipOf, ownSlot, releaseSlot, renewWhenDue } from './slot.ts'
import {
  advanceSoak,
  endSoakWithoutSlot,
  isSpent,
  lostSlotReason,
  mayBeginUnder,
  newSoak,
  notReadyReason,
} from './soak.ts'

/**
 * What a Skyhook that selects this node currently does there, by its current spec. `before`: its record, if it has one.
 */
export function planSkyhook(
  snapshot: Snapshot,
  view: SkyhookView,
  before: SkyhookRecord | undefined,
  precedingSkyhook: string | undefined,
): SkyhookPlan {
  const refusal = before === undefined ? otherOperatorGate(view, snapshot) : undefined
  if (refusal) return planRefused(snapshot, view, refusal)
  const bootstrapped = before === undefined ? bootstrapRecord(snapshot, view) : undefined
  const builder = newPlanBuilder(snapshot, view, bootstrapped?.record ?? recordOfSkyhook(before, view))
  if (bootstrapped?.event) builder.events.push(bootstrapped.event)
  const slot = ownSlot(snapshot, view)
  const hasStarted = builder.record.lifecycle !== undefined
  const gate = hasStarted
    ? pauseReason(view, snapshot)
    : (startGate(view, snapshot, precedingSkyhook) ?? packagePodGate(builder))
  endSoakWithoutSlot(builder, slot)
  const isOfUse = hasStarted || !isOfNoUse(snapshot, view, slot)
  const isFree =
    gate === undefined && isOfUse && mayWorkUnder(builder, slot, hasStarted) && mayBeginUnder(builder, slot)
  const mayDisrupt = isFree && mayLeaveControlPlane(snapshot)
  builder.depth = preparationDepth(builder, slot)
  const isCancelComplete = stopCanceledSteps(builder)
  const activeInterrupt = applyInterruptOutcome(builder, mayDisrupt)
  if (!hasStarted && !(isCancelComplete && activeInterrupt === undefined)) return awaitCanceledWork(builder, slot)
  const mayStart = isFree && activeInterrupt === undefined && otherInterrupt(builder) === undefined
  const disruption = disruptionOf(snapshot, view.metadata.name, view.spec)
  const permission = { mayStart, isDrained: disruption.isDrained && mayDisrupt }
  recordUninstallPolicies(builder)
  resumeLifecycle(builder, { mayStart })

  const names = [
    ...new Set([
      ...Object.keys(view.spec.packages ?? {}),
      ...Object.values(builder.record.packages).map(({ name }) => name),
    ]),
  ].sort()
  const isGated = gate !== undefined && !hasStarted // nothing is fetched for work that may not start
  const states = isGated ? [] : serialOrder(builder, names, advanceAll(builder, names, permission))
  const isDone = isGated ? !hasWork(snapshot, builder, names) : states.every(({ state }) => state === 'complete')
  if (isDone && activeInterrupt === undefined && builder.record.canceling === undefined)
    return planComplete(builder, slot)

  startLifecycle(builder, states, { mayStart, mayDisrupt })
  const plan = builder.record.lifecycle
    ? planWorking(builder, { slot, gate, states, disruption, activeInterrupt })
    : planWaiting(builder, slot, gate, states)
  return { ...plan, packageReasons: packageReasons(names, states, plan.reason) }
}

/**
 * Traces of another operator are neither read nor changed: the Node only shows the reason. A slot of work that is not
 * in the journal is given back, unless the Node is out of service under it.
 */
function planRefused(snapshot: Snapshot, view: SkyhookView, reason: Reason): SkyhookPlan {
  const builder = newPlanBuilder(snapshot, view, undefined)
  const slot = ownSlot(snapshot, view)
  if (slot && !hasCordon(snapshot, view.metadata.name)) releaseSlot(builder, slot)
  const status = statusFor(reason.reason, false)
  return { builder, status, reason, complete: false, cordon: 'as-is', watchPods: 'no', isUntouched: true }
}

/** Waiting packages are checked again: others may have become complete in this same decision. */
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

/** A serial Skyhook does not drain the node for one package while another is at work. */
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

/** Work left by a reset or by another Skyhook of this name must end before anything new is decided. */
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

/** The uninstall policy must be known when the package is no longer in the spec. */
function recordUninstallPolicies(builder: PlanBuilder): void {
  for (const entry of Object.values(builder.record.packages)) {
    const spec = ownValue(builder.view.spec.packages, entry.name)
    if (spec === undefined) continue
    if (!isEqual(entry.uninstall, spec.uninstall)) setEntry(builder, withFacts(entry, { uninstall: spec.uninstall }))
  }
}

/** Checks on a copy whether anything is due, without starting or fetching. */
function hasWork(snapshot: Snapshot, builder: PlanBuilder, names: readonly string[]): boolean {
  const dryRun = newPlanBuilder(snapshot, builder.view, builder.record)
  return names.some((name) => advancePackage(dryRun, name, { mayStart: false, isDrained: false }).state !== 'complete')
}

function planComplete(builder: PlanBuilder, slot: OwnSlot | undefined): SkyhookPlan {
  const isOut =
    builder.record.lifecycle?.interruptedAtMs !== undefined || hasCordon(builder.snapshot, builder.view.metadata.name)
  const pending =
    notReadyReason(builder) ?? (isOut ? staticPodsReason(builder.snapshot) : undefined) ?? lostSlotReason(builder, slot)
  if (pending) {
    keepSlot(builder, slot, 'working')
    keepControlPlaneSlot(builder, { need: controlPlaneNeed(builder, { drain: 'none' }), mayAsk: false }, 'working')
    return { builder, status: 'in_progress', reason: pending, complete: false, cordon: 'as-is', watchPods: 'no' }
  }
  const { lifecycle, reboots, takenOver } = builder.record
  const soak = newSoak(builder, slot)
  const { name } = builder.view.metadata
  if (lifecycle) builder.events.push({ type: 'completed', skyhook: name })
  if (takenOver === 'unfinished') builder.events.push({ type: 'foundComplete', skyhook: name })
  // reboots from before this host lost its disk do not count for later interrupts once it is complete
  const compacted = compactedReboots(reboots, appliedHash(builder.view.spec))
  builder.record = {
    ...builder.record,
    ...completionOf(builder),
    lifecycle: undefined,
    adopted: undefined,
    soak,
    takenOver: takenOver && 'complete',
    priorReboots: undefined,
    reboots: compacted,
  }
  const plan = { builder, status: 'complete', complete: true, cordon: 'off' } as const
  const isInService = isPublishedComplete(builder)
  const progress = advanceSoak(builder, isInService)
  if (slot && progress.state === 'soaking') {
    // before it has started the node may still be cordoned, and a restored etcd brings the mark back
    const isSoaking = builder.record.soak?.sinceMs !== undefined && !hasCordon(builder.snapshot, name)
    renewWhenDue(builder, `slot/${name}`, slot, isSoaking ? 'soaking' : isPastWork(slot.phase) ? 'working' : slot.phase)
    return { ...plan, watchPods: progress.watchPods, ...(progress.reason && { reason: progress.reason }) }
  }
  // its phase is a result of the batch: the slot goes when the result is counted
  if (slot?.batch === 'open' && isInService) renewWhenDue(builder, `slot/${name}`, slot, 'finished')
  else if (slot && isInService) releaseSlot(builder, slot)
  return { ...plan, watchPods: 'no' }
}

/** If the Node already shows complete for this hash, it stays: an edit of other fields costs no write. */
function completionOf({ record, view }: PlanBuilder): Pick<SkyhookRecord, 'applied' | 'completedBy'> {
  const applied = completionHash(view)
  const isShown = record.published?.status === 'complete' && record.applied === applied
  if (isShown && record.lifecycle === undefined && record.takenOver !== 'unfinished') return { applied }
  const { uid, generation } = view.metadata
  return { applied, completedBy: generation === undefined ? undefined : { uid, generation } }
}

/** The reboots have led to completion: only the fact of a reboot stays recorded, for hosts that lose their disk. */
const compactedReboots = (reboots: SkyhookRecord['reboots'], applied: string): SkyhookRecord['reboots'] =>
  Object.fromEntries(Object.keys(reboots).flatMap((key) => (key.startsWith(`${applied}/`) ? [[key, 1]] : [])))

/** The slot goes only after the Node shows completion: its next holder must not find us half done. */
function isPublishedComplete({ record, snapshot, view }: PlanBuilder): boolean {
  const { published } = record
  const { name } = view.metadata
  if (published?.status !== 'complete' || hasCordon(snapshot, name)) return false
  const { status, companion } = publishedOf(snapshot.node, name)
  return status === 'complete' && companion?.rev === published.rev
}

/**
 * How far the images of a Skyhook are prepared on this node. Layers cost the registry and the disk, and a rollout may
 * last for days: a node that is far from its turn only checks whether its images exist.
 *
 * | the node                                         | prepares |
 * |--------------------------------------------------|----------|
 * | has started to work                              | layers   |
 * | holds a slot under which work may start          | layers   |
 * | joins the cluster: it asks without a line        | layers   |
 * | is next in line, or needs no line                | layers   |
 * | is far from its turn, or may be                  | manifest |
 */
export function preparationDepth(builder: PlanBuilder, slot: OwnSlot | undefined): PreparationDepth {
  const { snapshot, view, record } = builder
  const mayStart = record.lifecycle !== undefined || (slot !== undefined && !isSpent(builder, slot))
  const isDistant = snapshot.distantSkyhooks.has(view.metadata.name)
  return !mayStart && isDistant && membershipOf(snapshot, view) !== 'joining' ? 'manifest' : 'layers'
}
