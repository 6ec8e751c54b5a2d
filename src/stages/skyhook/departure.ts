import { openStepOf, openStepsOf, type SkyhookRecord } from '../../schemas/journal.ts'
import { hasMark } from '../drain/drain.ts'
import { newPlanBuilder } from '../model/plan-builder.ts'
import { abandonInterrupt, cancelAll, stopCanceledSteps, stopUnstarted } from '../package/cancel.ts'
import { applyInterruptOutcome } from '../interrupt/run.ts'
import type { Action, StageEvent } from '../model/plan.ts'
import { endLifecycle } from './lifecycle.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'
import { ownSlot, releaseSlot, slotOfSkyhook } from './slot.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { isInterrupting, mayBeRunning } from '../model/host-facts.ts'

/**
 * A node that left the selector: a running step ends, one that is about to start is stopped, then cordon and slot go;
 * packages and their state stay as they are. Selected again, it asks for a slot like any other. Nothing to say about a
 * Skyhook that never did anything here.
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
  // work of another Skyhook of this name is nobody's any more: it is stopped, and its slot goes after that
  const builder = newPlanBuilder(snapshot, view, record.uid === view.metadata.uid ? record : cancelAll(record))
  builder.record = abandonInterrupt(builder.record)
  for (const entry of Object.values(builder.record.packages)) {
    const step = openStepOf(entry.progress)
    const isAboutToStart =
      step !== undefined && mayBeRunning(snapshot, step) && snapshot.attempts.get(step.id)?.state !== 'running'
    if (isAboutToStart) builder.record = stopUnstarted(builder.record, entry, step)
  }
  const isCancelComplete = stopCanceledSteps(builder)
  const activeInterrupt = applyInterruptOutcome(builder, false)
  const running =
    !isCancelComplete ||
    activeInterrupt !== undefined ||
    openStepsOf(builder.record).some((step) => mayBeRunning(snapshot, step))
  if (!running) {
    endLifecycle(builder)
    if (slot) releaseSlot(builder, slot)
  }
  return {
    builder,
    status: record.published?.status ?? 'unknown',
    complete: true,
    cordon: running ? 'as-is' : 'off',
    watchPods: 'no',
  }
}

/**
 * A Skyhook that is gone from a successful, consistent LIST: its running steps are stopped, its slot and everything it
 * shows on the Node go; journal and files stay as `orphaned`. Nothing is ever run for it.
 */
export function planDeleted(
  snapshot: Snapshot,
  name: string,
  record: SkyhookRecord,
): { readonly record: SkyhookRecord; readonly actions: readonly Action[]; readonly events: readonly StageEvent[] } {
  const actions: Action[] = []
  const builder = { snapshot, record: record.orphaned ? record : cancelAll(record), actions }
  const isCancelComplete = stopCanceledSteps(builder)
  const { interrupt } = builder.record
  const running =
    !isCancelComplete ||
    (interrupt !== undefined && snapshot.interrupts.has(interrupt.id) && isInterrupting(snapshot, interrupt))
  const slot = slotOfSkyhook(snapshot, record.uid)
  const isMarked = hasMark(snapshot.node, name)
  if (slot && !running && !isMarked) actions.push({ do: 'releaseSlot', key: `slot/${name}`, slot })
  if (record.orphaned || running) return { record: builder.record, actions, events: [] }
  if (interrupt)
    actions.push({
      do: 'recordInterrupt',
      key: `interrupted/${interrupt.id}`,
      skyhook: name,
      run: interrupt,
      records: [],
    })
  const orphan = {
    ...builder.record,
    lifecycle: undefined,
    published: undefined,
    interrupt: undefined,
    orphaned: true,
  }
  return { record: orphan, actions, events: [{ type: 'orphaned', skyhook: name }] }
}
