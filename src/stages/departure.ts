import type { SkyhookRecord } from '../schemas/journal.ts'
import { newDraft } from './draft.ts'
import type { Action, StageEvent } from './plan.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'
import { isMidChange } from './transitions.ts'
import type { SkyhookView, World } from './world.ts'

/**
 * A node that left the selector: a running step ends and is recorded, then the slot goes; packages and their state stay
 * as they are. Nothing to say about a Skyhook that never did anything here.
 */
export function leave(world: World, view: SkyhookView, record: SkyhookRecord | undefined): SkyhookPlan | undefined {
  const slot = world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined
  if (!record) {
    if (!slot) return undefined
    const draft = newDraft(world, view, undefined)
    draft.actions.push({ do: 'releaseSlot', key: `slot/${view.metadata.name}`, slot })
    return { draft, status: 'unknown', complete: true, cordon: 'off', watchPods: 'no' }
  }
  const draft = newDraft(world, view, record)
  const running = Object.values(record.packages).some(({ attempt }) => {
    const last = attempt?.steps.at(-1)
    return last !== undefined && last.result === undefined && world.attempts.get(last.id)?.state === 'running'
  })
  if (!running) {
    if (record.lifecycle && !Object.values(record.packages).some(isMidChange)) {
      const { lifecycle: _, ...rest } = record
      draft.record = rest
    }
    if (slot) draft.actions.push({ do: 'releaseSlot', key: `slot/${view.metadata.name}`, slot })
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
  let running = false
  for (const { attempt } of Object.values(record.packages)) {
    const last = attempt?.steps.at(-1)
    if (last === undefined || last.result !== undefined) continue
    if (world.attempts.get(last.id)?.state !== 'running') continue
    running = true
    actions.push({ do: 'stopStep', key: `stop/${last.id}`, step: last })
  }
  const slot = world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === record.uid) : undefined
  if (slot && !running) actions.push({ do: 'releaseSlot', key: `slot/${name}`, slot })
  if (record.orphaned) return { record, actions, events: [] }
  const { lifecycle: _, published: __, interrupt: ___, ...rest } = record
  return running
    ? { record, actions, events: [] }
    : { record: { ...rest, orphaned: true }, actions, events: [{ type: 'orphaned', skyhook: name }] }
}
