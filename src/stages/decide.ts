import type { NodePatch } from '../schemas/kubernetes.ts'
import { journalVersion, type Journal, type SkyhookRecord } from '../schemas/journal.ts'
import { isDisabled, isSelected, specProblem } from './skyhook/gates.ts'
import { sortByPriority } from './skyhook/priority.ts'
import type { Action, Plan, StageEvent, TimedReason } from './model/plan.ts'
import { nextPublished, removalPatch, nodeShowsComplete, skyhookPatch } from './publish/node-annotations.ts'
import { reconcileAnnotations, existingEdit } from './publish/reconcile-annotations.ts'
import { reasonReportDelayMs, type Reason } from '../schemas/catalogue/reasons.ts'
import { planSkyhook } from './skyhook/plan-skyhook.ts'
import { cordonState } from './drain/drain.ts'
import { recordBoot } from './package/reapply-on-boot.ts'
import { planUnselected, planDeleted } from './skyhook/departure.ts'
import { NodeSpecBuilder } from './drain/node-spec-builder.ts'
import type { OwnSlot, SkyhookView, Snapshot } from './model/snapshot.ts'
import type { PodWatch } from './model/pods.ts'
import { emptyPatch, isEmptyPatch } from './model/node-patch.ts'

/**
 * The one decision of the agent: from everything it knows to what happens next. Pure and level-triggered: the same
 * world gives the same plan, and events only cause it to be asked again.
 * /
 */
export function decide(snapshot: Snapshot, lastReasons: ReadonlyMap<string, TimedReason>): Plan {
  const events: StageEvent[] = []
  const actions: Action[] = []
  const needed = new Set<string>()
  const reasons = new Map<string, TimedReason>()
  const patches: NodePatch[] = []
  let requeueAtMs = Infinity

  const reconciled = reconcileAnnotations(recordBoot(snapshot.journal, snapshot), snapshot.node)
  events.push(...reconciled.events)
  const records: Record<string, SkyhookRecord> = { ...reconciled.journal.skyhooks }
  const current: Snapshot = { ...snapshot, journal: { ...reconciled.journal, skyhooks: records } } // what is decided for one is seen by the next

  const commit = (
    name: string,
    record: SkyhookRecord,
    timed: TimedReason | undefined,
    show: 'shown' | 'removed',
  ): void => {
    if (timed) {
      reasons.set(name, timed)
      const reportAtMs = timed.sinceMs + reasonReportDelayMs
      if (reportAtMs > snapshot.nowMs) requeueAtMs = Math.min(requeueAtMs, reportAtMs)
    }
    records[name] = record
    if (show === 'removed') {
      patches.push(removalPatch(current, name))
      return
    }
    const { recheckAtMs, ...patch } = skyhookPatch(current, name, record, timed)
    requeueAtMs = Math.min(requeueAtMs, recheckAtMs)
    patches.push(patch)
  }

  const spec = new NodeSpecBuilder(current, events)
  let watchPods: PodWatch = 'no'
  let precedingSkyhook: string | undefined
  for (const view of snapshot.skyhooks.known ? sortByPriority(snapshot.skyhooks.value) : []) {
    const { name } = view.metadata
    const planned = isSelected(view, current)
      ? planSkyhook(current, view, records[name], precedingSkyhook)
      : planUnselected(current, view, records[name])
    if (!planned) continue
    const { builder, status, reason } = planned
    const timed = reason && withSince(reason, lastReasons.get(name), snapshot.nowMs)
    const isContradicted = status !== 'complete' && nodeShowsComplete(current, name, view.spec)
    const { published, recheckAtMs } = nextPublished(builder.record, status, timed, snapshot.nowMs, isContradicted)
    const isFirst = builder.record.published === undefined
    const record =
      published === undefined || published === builder.record.published
        ? builder.record
        : { ...builder.record, published, rev: published.rev, ...(isFirst && existingEdit(current.node, name)) }
    requeueAtMs = Math.min(requeueAtMs, recheckAtMs, builder.requeueAtMs, spec.cordon(name, planned.cordon))
    if (planned.watchPods === 'cordoned' || watchPods === 'no') watchPods = planned.watchPods
    actions.push(...builder.actions)
    events.push(...builder.events)
    for (const key of builder.needed) needed.add(key)
    commit(name, record, timed, 'shown')
    if (isSelected(view, current)) spec.required(view, planned.complete)
    if (precedingSkyhook === undefined && !planned.complete && blocksLowerPriority(view, current))
      precedingSkyhook = name
  }

  if (snapshot.skyhooks.known) {
    const present = new Set(snapshot.skyhooks.value.map(({ metadata }) => metadata.name))
    const uids = new Set(snapshot.skyhooks.value.map(({ metadata }) => metadata.uid))
    for (const [name, record] of Object.entries(records)) {
      if (present.has(name)) continue
      const deleted = planDeleted(current, name, record)
      actions.push(...deleted.actions)
      events.push(...deleted.events)
      if (deleted.record.orphaned) spec.cordon(name, 'off')
      commit(name, deleted.record, undefined, deleted.record.orphaned ? 'removed' : 'shown')
    }
    for (const mark of spec.marks()) if (!present.has(mark) && !(mark in records)) spec.cordon(mark, 'off')
    if (snapshot.slots.known) {
      for (const slot of snapshot.slots.value) {
        const isOwned = present.has(slot.skyhook)
          ? slot.skyhookUid !== undefined && uids.has(slot.skyhookUid)
          : slot.skyhook in records
        if (!isOwned && isFreeOf(current, slot, records[slot.skyhook]))
          actions.push({ do: 'releaseSlot', key: `slot/${slot.lease}`, slot })
      }
    }
  }

  const change = spec.finish()
  patches.push(change.patch)
  const patch = mergePatches(patches)
  if (!isEmptyPatch(patch))
    actions.push({ do: 'publish', key: 'publish', patch, computedFrom: snapshot.node.metadata.resourceVersion })
  const journal: Journal = {
    v: journalVersion,
    nodeUid: snapshot.node.metadata.uid,
    bootId: snapshot.bootId,
    ...change.journalFields,
    skyhooks: records,
  }
  return { journal, actions, reasons, events, needed, watchPods, requeueAtMs }
}

/** Nothing that the slot was taken for is left on this node: no step, no interrupt, no cordon. */
const isFreeOf = (snapshot: Snapshot, { skyhook }: OwnSlot, record: SkyhookRecord | undefined): boolean =>
  record?.canceling === undefined && !record?.interrupt?.abandoned && !cordonState(snapshot.node).marks.has(skyhook)

/** A later Skyhook waits for this one: it is selected here, not disabled and its spec can be worked on. */
const blocksLowerPriority = (view: SkyhookView, snapshot: Snapshot): boolean =>
  isSelected(view, snapshot) && !isDisabled(view) && specProblem(view) === undefined

function withSince(reason: Reason, last: TimedReason | undefined, nowMs: number): TimedReason {
  const isUnchanged = last?.reason === reason.reason && last.message === reason.message
  return { ...reason, sinceMs: isUnchanged ? last.sinceMs : nowMs }
}

/**
 * One change of the Node. No request takes spec and conditions together, and the node controller answers a cordon with
 * its taint at once: a second request right behind the first would meet a newer Node. So conditions wait for the
 * decision that sees the spec changed.
 * /
 */
function mergePatches(patches: readonly NodePatch[]): NodePatch {
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
