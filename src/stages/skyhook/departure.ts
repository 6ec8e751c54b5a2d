import type { SkyhookRecord } from '../../schemas/journal.ts'
import { openStepsOf } from '../../schemas/journal.ts'
import { cordonState } from '../drain/drain.ts'
import { newDraft } from '../model/plan-builder.ts'
import { haltAll, haltPackage, isInterrupting, mayRun, openStepOf, stopSteps } from '../package/cancel.ts'
import { foldInterrupt } from '../interrupt/run.ts'
import type { Action, StageEvent } from '../model/plan.ts'
import type { SkyhookPlan } from './plan-skyhook.ts'
import { releaseSlot } from './slot.ts'
import { isMidChange } from '../package/next-stage.ts'
import type { SkyhookView, World } from '../model/snapshot.ts'

/**
 * A node that left the selector: a running step ends and is recorded, then the slot goes; packages and their state stay
 * as they are. Nothing to say about a Skyhook that never did anything here.
 */
export function leave(world: World, view: SkyhookView, record: SkyhookRecord | undefined): SkyhookPlan | undefined {
  const slot = world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined
  if (!record) {
    if (!slot) return undefined
    const draft = newDraft(world, view, undefined)
    releaseSlot(draft, slot)
    return { draft, status: 'unknown', complete: true, cordon: 'off', watchPods: 'no' }
  }
  // work of another Skyhook of this name is nobody's any more: it is stopped, and its slot goes after that
  const draft = newDraft(world, view, record.uid === view.metadata.uid ? record : haltAll(record))
  if (record.interrupt) draft.record = { ...draft.record, interrupt: { ...record.interrupt, abandoned: true } }
  for (const entry of Object.values(draft.record.packages)) {
    const step = openStepOf(entry.attempt)
    const isAboutToStart = step !== undefined && mayRun(world, step) && world.attempts.get(step.id)?.state !== 'running'
    if (isAboutToStart) draft.record = haltPackage(draft.record, entry)
  }
  const isStopped = stopSteps(draft)
  const under = foldInterrupt(draft, false)
  const running = !isStopped || under !== undefined || openStepsOf(draft.record).some((step) => mayRun(world, step))
  if (!running) {
    if (draft.record.lifecycle && !Object.values(draft.record.packages).some(isMidChange)) {
      const { lifecycle: _, ...rest } = draft.record
      draft.record = rest
    }
    if (slot) releaseSlot(draft, slot)
  }
  return { draft, status: record.published?.status ?? 'unknown', complete: true, cordon: running ? 'as-is' : 'off', watchPods: 'no' }
}

/**
 * A Skyhook that is gone from a successful, consistent LIST: its running steps are stopped, its slot and everything it
 * shows on the Node go; journal and files stay as `orphaned`. Nothing is ever run for it.
 */
export function vanish(
  world: World,
  name: string,
  record: SkyhookRecord,
): { readonly record: SkyhookRecord; readonly actions: readonly Action[]; readonly events: readonly StageEvent[] } {
  const actions: Action[] = []
  const draft = { world, record: record.orphaned ? record : haltAll(record), actions }
  const isStopped = stopSteps(draft)
  const { interrupt } = draft.record
  const running = !isStopped || (interrupt !== undefined && world.interrupts.has(interrupt.id) && isInterrupting(world, interrupt))
  const slot = world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === record.uid) : undefined
  const isMarked = cordonState(world.node).marks.has(name)
  if (slot && !running && !isMarked) actions.push({ do: 'releaseSlot', key: `slot/${name}`, slot })
  if (record.orphaned || running) return { record: draft.record, actions, events: [] }
  if (interrupt) actions.push({ do: 'recordInterrupt', key: `interrupted/${interrupt.id}`, skyhook: name, run: interrupt, records: [] })
  const { lifecycle: _, published: __, interrupt: ___, ...rest } = draft.record
  return { record: { ...rest, orphaned: true }, actions, events: [{ type: 'orphaned', skyhook: name }] }
}
