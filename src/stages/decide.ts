import type { Journal, SkyhookRecord } from '../schemas/journal.ts'
import { isDisabled, isSelected, specProblem } from './skyhook/gates.ts'
import { inOrder } from './skyhook/priority.ts'
import type { Action, NodePatch, Plan, StageEvent, TimedReason } from './model/plan.ts'
import { emptyPatch, isEmptyPatch, nextPublished, removalPatch, saysComplete, skyhookPatch } from './publish/node-annotations.ts'
import { reconcile, standingEdit } from './publish/reconcile-annotations.ts'
import { reasonLastsMs } from './model/reasons.ts'
import type { Reason } from './model/reasons.ts'
import { planSkyhook } from './skyhook/plan-skyhook.ts'
import { cordonState } from './drain/drain.ts'
import type { PodWatch } from './drain/drain.ts'
import { noteBoot } from './package/reapply-on-boot.ts'
import { leave, vanish } from './skyhook/departure.ts'
import { NodeSpecDraft } from './drain/node-spec-builder.ts'
import type { OwnSlot, SkyhookView, World } from './model/snapshot.ts'

/**
 * The one decision of the agent: from everything it knows to what happens next. Pure and level-triggered: the same world
 * gives the same plan, and events only cause it to be asked again.
 */
export function decide(world: World, lastReasons: ReadonlyMap<string, TimedReason>): Plan {
  const events: StageEvent[] = []
  const actions: Action[] = []
  const needed = new Set<string>()
  const reasons = new Map<string, TimedReason>()
  const patches: NodePatch[] = []
  let wakeAtMs = Number.POSITIVE_INFINITY

  const reconciled = reconcile(noteBoot(world.journal, world), world.node)
  events.push(...reconciled.events)
  const records: Record<string, SkyhookRecord> = { ...reconciled.journal.skyhooks }
  const seen: World = { ...world, journal: { ...reconciled.journal, skyhooks: records } } // what is decided for one is seen by the next

  const adopt = (name: string, record: SkyhookRecord, timed: TimedReason | undefined, show: 'shown' | 'removed'): void => {
    if (timed) {
      reasons.set(name, timed)
      const tellAtMs = timed.sinceMs + reasonLastsMs
      if (tellAtMs > world.nowMs) wakeAtMs = Math.min(wakeAtMs, tellAtMs)
    }
    records[name] = record
    if (show === 'removed') {
      patches.push(removalPatch(seen, name))
      return
    }
    const { againAtMs, ...patch } = skyhookPatch(seen, name, record, timed)
    wakeAtMs = Math.min(wakeAtMs, againAtMs)
    patches.push(patch)
  }

  const spec = new NodeSpecDraft(seen, events)
  let watchPods: PodWatch = 'no'
  let earlier: string | undefined
  for (const view of world.skyhooks.known ? inOrder(world.skyhooks.value) : []) {
    const { name } = view.metadata
    const planned = isSelected(view, seen) ? planSkyhook(seen, view, records[name], earlier) : leave(seen, view, records[name])
    if (!planned) continue
    const { draft, status, reason } = planned
    const timed = reason && withSince(reason, lastReasons.get(name), world.nowMs)
    const isBelied = status !== 'complete' && saysComplete(seen, name, view.spec)
    const { published, againAtMs } = nextPublished(draft.record, status, timed, world.nowMs, isBelied)
    const isFirst = draft.record.published === undefined
    const record =
      published === undefined || published === draft.record.published
        ? draft.record
        : { ...draft.record, published, rev: published.rev, ...(isFirst && standingEdit(seen.node, name)) }
    wakeAtMs = Math.min(wakeAtMs, againAtMs, draft.wakeAtMs, spec.cordon(name, planned.cordon))
    if (planned.watchPods === 'cordoned' || watchPods === 'no') watchPods = planned.watchPods
    actions.push(...draft.actions)
    events.push(...draft.events)
    for (const key of draft.needed) needed.add(key)
    adopt(name, record, timed, 'shown')
    if (isSelected(view, seen)) spec.required(view, planned.complete)
    if (earlier === undefined && !planned.complete && blocksLater(view, seen)) earlier = name
  }

  if (world.skyhooks.known) {
    const present = new Set(world.skyhooks.value.map(({ metadata }) => metadata.name))
    const uids = new Set(world.skyhooks.value.map(({ metadata }) => metadata.uid))
    for (const [name, record] of Object.entries(records)) {
      if (present.has(name)) continue
      const gone = vanish(seen, name, record)
      actions.push(...gone.actions)
      events.push(...gone.events)
      if (gone.record.orphaned) spec.cordon(name, 'off')
      adopt(name, gone.record, undefined, gone.record.orphaned ? 'removed' : 'shown')
    }
    for (const mark of spec.marks()) if (!present.has(mark) && !(mark in records)) spec.cordon(mark, 'off')
    if (world.slots.known) {
      for (const slot of world.slots.value) {
        const isOwned = present.has(slot.skyhook) ? uids.has(slot.skyhookUid) : slot.skyhook in records
        if (!isOwned && isFreeOf(seen, slot, records[slot.skyhook])) actions.push({ do: 'releaseSlot', key: `slot/${slot.lease}`, slot })
      }
    }
  }

  const change = spec.finish()
  patches.push(change.patch)
  const patch = merge(patches)
  if (!isEmptyPatch(patch)) actions.push({ do: 'publish', key: 'publish', patch, computedFrom: world.node.metadata.resourceVersion })
  const journal: Journal = { v: 1, nodeUid: world.node.metadata.uid, bootId: world.bootId, ...change.memory, skyhooks: records }
  return { journal, actions, reasons, events, needed, watchPods, wakeAtMs }
}

/** Nothing that the slot was taken for is left on this node: no step, no interrupt, no cordon. */
const isFreeOf = (world: World, { skyhook }: OwnSlot, record: SkyhookRecord | undefined): boolean =>
  record?.stopping === undefined && !record?.interrupt?.abandoned && !cordonState(world.node).marks.has(skyhook)

/** A later Skyhook waits for this one: it is selected here, not disabled and its spec can be worked on. */
const blocksLater = (view: SkyhookView, world: World): boolean =>
  isSelected(view, world) && !isDisabled(view) && specProblem(view) === undefined

function withSince(reason: Reason, last: TimedReason | undefined, nowMs: number): TimedReason {
  const same = last?.reason === reason.reason && last.message === reason.message
  return { ...reason, sinceMs: same ? last.sinceMs : nowMs }
}

/**
 * One change of the Node. No request takes spec and conditions together, and the node controller answers a cordon with its taint at once: a
 * second request right behind the first would meet a newer Node. So conditions wait for the decision that sees the spec changed.
 */
function merge(patches: readonly NodePatch[]): NodePatch {
  const merged = emptyPatch()
  for (const { annotations, labels, conditions, removedConditions, unschedulable, taints } of patches) {
    if (unschedulable !== undefined) merged.unschedulable = unschedulable
    if (taints !== undefined) merged.taints = taints
    Object.assign(merged.annotations, annotations)
    Object.assign(merged.labels, labels)
    merged.conditions.push(...conditions)
    merged.removedConditions.push(...removedConditions)
  }
  const hasSpec = merged.unschedulable !== undefined || merged.taints !== undefined
  return hasSpec ? { ...merged, conditions: [], removedConditions: [] } : merged
}
