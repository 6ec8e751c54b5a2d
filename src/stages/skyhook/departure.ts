import { openStepOf, openStepsOf, type SkyhookRecord } from '../../schemas/journal.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { leavesFilesOnHost } from '../model/package-state.ts'
import { newPlanBuilder, type PlanBuilder } from '../model/plan-builder.ts'
import { abandonInterrupt, cancelAll, stopCanceledSteps, stopUnstarted } from '../package/cancel.ts'
import { applyInterruptOutcome } from '../interrupt/run.ts'
import { endLifecycle } from './lifecycle.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'
import { ownSlot, releaseSlot } from './slot.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { mayBeRunning } from '../model/host-facts.ts'

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
