import type { Reason } from '../../schemas/catalogue/reason.ts'
import { openStepsOf, type SkyhookRecord } from '../../schemas/journal.ts'
import { isRetrying, isRunning, openStepOf, type PackageRecord } from '../../schemas/package-record.ts'
import { drainBlocker, isDrainRequested } from '../drain/drain-status.ts'
import { hasCordon } from '../drain/drain.ts'
import { applyInterruptOutcome } from '../interrupt/run.ts'
import { leavesFilesOnHost, mayBeRunning, type PackageState } from '../model/package-state.ts'
import { newPlanBuilder, type PlanBuilder, type SkyhookPlan } from '../model/plan-builder.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { abandonInterrupt, cancelAll, stopCanceledSteps, stopUnstarted } from '../package/cancel.ts'
import { ownSlot, releaseSlot } from './slot.ts'
import { readyDaemonSets } from './soak.ts'

/**
 * A node that left the selector: a running step ends, a step that is about to start is stopped, then cordon and slot
 * go; packages and their state stay as they are. Selected again, it requests a slot like any other node. Undefined for
 * a Skyhook that never did anything here.
 */
export function planUnselected(
  snapshot: Snapshot,
  view: SkyhookView,
  record: SkyhookRecord | undefined,
): SkyhookPlan | undefined {
  const slot = ownSlot(snapshot, view)
  if (!record) {
    if (!slot) return undefined
    const builder = newPlanBuilder(snapshot, view, undefined)
    releaseSlot(builder, slot)
    return { builder, status: 'unknown', complete: true, cordon: 'off', watchPods: 'no' }
  }
  // work of another Skyhook of this name has no owner: it is stopped, and then its slot goes
  const builder = newPlanBuilder(snapshot, view, record.uid === view.metadata.uid ? record : cancelAll(record))
  builder.record = abandonInterrupt(builder.record)
  for (const entry of Object.values(builder.record.packages)) {
    const step = openStepOf(entry.progress)
    const isAboutToStart =
      step !== undefined && mayBeRunning(snapshot, step) && snapshot.attempts.get(step.id)?.state !== 'running'
    if (isAboutToStart) builder.record = stopUnstarted(builder.record, entry, step)
  }
  const remaining = awaitEnd(builder)
  if (!remaining) {
    endLifecycle(builder)
    if (slot) releaseSlot(builder, slot)
  }
  return departing(builder, remaining)
}

/**
 * A Skyhook that is gone from a successful, consistent LIST: the agent stops its running steps and waits for its
 * interrupt, then its slot and everything it shows on the Node go; journal and files stay as `orphaned`. Nothing runs
 * for it.
 */
export function planDeleted(snapshot: Snapshot, name: string, record: SkyhookRecord): SkyhookPlan {
  const view = goneView(name, record)
  const builder = newPlanBuilder(snapshot, view, record.orphaned ? record : cancelAll(record))
  const remaining = awaitEnd(builder)
  const slot = ownSlot(snapshot, view)
  if (slot && !remaining) releaseSlot(builder, slot)
  if (!remaining && !record.orphaned) {
    const leavesFiles = Object.values(builder.record.packages).some(leavesFilesOnHost)
    builder.record = { ...builder.record, lifecycle: undefined, published: undefined, orphaned: true }
    builder.events.push({ type: 'orphaned', skyhook: name, leavesFiles })
  }
  return departing(builder, remaining)
}

/** The view of a Skyhook that the cluster does not have: it requests nothing. */
const goneView = (name: string, { uid }: SkyhookRecord): SkyhookView => ({
  metadata: { name, uid, resourceVersion: '' },
  spec: {},
  budget: {},
  stale: true,
})

/** Work that has not ended, and, where known, why the Node still shows it. */
type Remaining = { readonly reason: Reason | undefined }

/** The cordon goes once nothing remains. */
const departing = (builder: PlanBuilder, remaining: Remaining | undefined): SkyhookPlan => ({
  builder,
  status: builder.record.published?.status ?? 'unknown',
  ...(remaining?.reason && { reason: remaining.reason }),
  complete: true,
  cordon: remaining ? 'as-is' : 'off',
  watchPods: 'no',
})

/**
 * Stops the steps to stop, and waits for running steps and for the running interrupt: without asking the host, the
 * agent would never learn that it does not go down. Undefined once nothing of it is left.
 */
function awaitEnd(builder: PlanBuilder): Remaining | undefined {
  const isCancelComplete = stopCanceledSteps(builder)
  const interrupt = applyInterruptOutcome(builder, false)
  const isStepRunning = openStepsOf(builder.record).some((step) => mayBeRunning(builder.snapshot, step))
  if (isCancelComplete && interrupt === undefined && !isStepRunning) return undefined
  return { reason: interrupt?.state === 'running' ? interrupt.reason : undefined }
}

/**
 * When the work of a Skyhook on this node has started. From then on it continues to its end under the node's slot,
 * which is created again if it is lost. Giving the slot back ends that, even if work is half done: other nodes may use
 * the capacity now, and the node needs the current budget to start again.
 */

type LifecyclePermission = {
  /** Stages may start on the host. */
  readonly mayStart: boolean
  /** The node may be taken out of service as well. */
  readonly mayDisrupt: boolean
}

/** Work that was half done when the node gave its slot back continues, now that the node has another slot. */
export function resumeLifecycle(builder: PlanBuilder, { mayStart }: Pick<LifecyclePermission, 'mayStart'>): void {
  if (mayStart && Object.values(builder.record.packages).some(isUnderWay)) begin(builder)
}

/** Work starts with the first stage, or with taking the node out of service for it. */
export function startLifecycle(
  builder: PlanBuilder,
  states: readonly PackageState[],
  { mayStart, mayDisrupt }: LifecyclePermission,
): void {
  if (!mayStart) return
  const mayDrain = mayDisrupt && isDrainRequested(states) && drainBlocker(builder) === undefined
  if (mayDrain || Object.values(builder.record.packages).some(isUnderWay)) begin(builder)
}

/**
 * The node gives its slot back half changed, because the rest is no longer requested. Until its cordon is gone, the
 * slot and the right to continue stay.
 */
function endLifecycle(builder: PlanBuilder): void {
  const { snapshot, view, record } = builder
  if (snapshot.slots.known && !hasCordon(snapshot, view.metadata.name))
    builder.record = { ...record, lifecycle: undefined }
}

function begin(builder: PlanBuilder): void {
  const { record, snapshot, view } = builder
  if (record.lifecycle) return
  const { generation = 0, name } = view.metadata
  const isInterrupted = Object.values(record.packages).some(isPastInterrupt)
  const lifecycle = {
    startedAtMs: snapshot.nowMs,
    generation,
    ...(isInterrupted && { interruptedAtMs: snapshot.nowMs }),
    ...readyDaemonSets(snapshot, view),
  }
  builder.record = { ...record, lifecycle, adopted: undefined, takenOver: undefined }
  builder.events.push({ type: 'began', skyhook: name, generation })
}

const isUnderWay = (entry: PackageRecord): boolean => isRunning(entry) || isRetrying(entry) || isPastInterrupt(entry)

/** The interrupt ran, and post-interrupt has not passed: the node must become Ready for it. */
const isPastInterrupt = ({ progress: { stage, state } }: PackageRecord): boolean =>
  stage === 'interrupt'
    ? state === 'complete'
    : stage === 'post-interrupt' && (state === 'running' || state === 'retrying')
