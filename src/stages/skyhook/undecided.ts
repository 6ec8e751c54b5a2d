/** Reasons outside of the decisions: nothing can be decided, or the Node cannot be written. */
import { reasonKey, skyhooksWith, statusKey } from '../../schemas/annotations.ts'
import { type Reason, statusFor } from '../../schemas/catalogue/reason.ts'
import { type Journal, openStepsOf, type SkyhookRecord } from '../../schemas/journal.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import {
  type Failing,
  isWait,
  newPlanBuilder,
  reasonMessage,
  type SkyhookPlan,
  worstOf,
} from '../model/plan-builder.ts'
import {
  type Action,
  emptyPatch,
  failureKey,
  isEmptyPatch,
  isPlannedOnce,
  type Plan,
  type TimedReason,
} from '../model/plan.ts'
import type { Failure, SkyhookView, Snapshot } from '../model/snapshot.ts'
import { annotationRoom, publishAction, publishFailureKeys } from '../publish/essential-patch.ts'
import { reasonAnnotation, showsReason } from '../publish/node-annotations.ts'
import { recordOfSkyhook } from './adoption.ts'
import { isSelected } from './gates.ts'
import { ownSlot } from './slot.ts'

type TimedReasons = { readonly reasons: ReadonlyMap<string, TimedReason>; readonly recheckAtMs: number }

/** Every Skyhook of this node shows why nothing is decided; everything else stays as it is. */
export function undecidedPlan(snapshot: Snapshot, failure: Failure): Plan {
  const reasons = reasonFor(skyhooksOf(snapshot), failure)
  const patch = reasonsPatch(snapshot, reasons)
  return {
    journal: snapshot.journal,
    actions: isEmptyPatch(patch) ? [] : [publishAction(snapshot, patch)],
    reasons,
    events: [],
    needed: new Set(),
    slotRequests: new Set(),
    watchPods: 'no',
    requeueAtMs: Infinity,
  }
}

/** Nothing new is decided while one Skyhook cannot be read: all show that reason. */
export function unreadReasons(snapshot: Snapshot): TimedReasons {
  if (snapshot.skyhooks.known) return { reasons: new Map(), recheckAtMs: Infinity }
  const { failure, recheckAtMs } = worstOf(snapshot, (_, { action }) => action === undefined)
  return { reasons: failure ? reasonFor(skyhooksOf(snapshot), failure) : new Map(), recheckAtMs }
}

/** The Node cannot be written: these go to the log, to the metrics and into an Event. */
export function unpublishedReasons(
  snapshot: Snapshot,
  decisions: readonly { readonly name: string; readonly patch: NodePatch }[],
): TimedReasons {
  const { failure: worst, recheckAtMs } = worstOf(snapshot, (key) => publishFailureKeys.has(key))
  const failure =
    worst?.isContentRefused === true
      ? { ...worst, message: `${worst.message}; ${annotationRoom(snapshot.node)}` }
      : worst
  const changed = decisions.filter(({ patch }) => !isEmptyPatch(patch))
  const concerned = changed.length > 0 ? changed : decisions
  const names = concerned.map(({ name }) => name)
  return { reasons: failure ? reasonFor(names, failure) : new Map(), recheckAtMs }
}

/** Only the reasons, where the Node shows others. */
export function reasonsPatch(snapshot: Snapshot, reasons: ReadonlyMap<string, TimedReason>): NodePatch {
  const patch = emptyPatch()
  for (const [name, reason] of reasons) {
    const shown = snapshot.node.metadata.annotations?.[reasonKey(name)]
    if (!showsReason(shown, reason)) patch.annotations[reasonKey(name)] = reasonAnnotation(snapshot, reason)
  }
  return patch
}

/**
 * Removes the reasons of Skyhooks without any other decision here, once they are gone or have left the node. `decided`:
 * those whose decisions set their reasons.
 */
export function staleReasonsPatch(snapshot: Snapshot, journal: Journal, decided: ReadonlySet<string>): NodePatch {
  const patch = emptyPatch()
  if (!snapshot.skyhooks.known) return patch
  const outdated = new Set(
    snapshot.skyhooks.value.filter((view) => isOutdated(snapshot, view)).map(({ metadata }) => metadata.name),
  )
  for (const name of skyhooksWith(reasonKey, snapshot.node.metadata.annotations)) {
    const isOwned = decided.has(name) || outdated.has(name) || Object.hasOwn(journal.skyhooks, name)
    if (!isOwned) patch.annotations[reasonKey(name)] = null
  }
  return patch
}

const reasonFor = (names: readonly string[], failure: Failure): ReadonlyMap<string, TimedReason> =>
  new Map(names.map((name) => [name, timed(failure)]))

/** Those that the Node shows, and those that select it. */
function skyhooksOf(snapshot: Snapshot): readonly string[] {
  const { skyhooks, node } = snapshot
  const shown = skyhooksWith(statusKey, node.metadata.annotations)
  const selecting = skyhooks.known ? skyhooks.value.filter((view) => isSelected(view, snapshot)) : []
  return [...new Set([...shown, ...selecting.map(({ metadata }) => metadata.name)])].toSorted()
}

/** The failures of one Skyhook, and their reasons on the Node. */

type Concern = {
  readonly skyhook: string
  readonly actions: readonly Action[]
  /** Failures of the whole node do not matter to a Skyhook without remaining work. */
  readonly isComplete: boolean
}

/** Failures of actions that it requests now or requested before, and failures outside of plans. */
export function failingFor(snapshot: Snapshot, { skyhook, actions, isComplete }: Concern): Failing {
  if (snapshot.failures.size === 0) return { failure: undefined, recheckAtMs: Infinity }
  const requested = new Set(actions.map(failureKey))
  return worstOf(snapshot, (key, failure) =>
    failure.action === undefined || isPlannedOnce(failure.action)
      ? failure.skyhook === skyhook || (failure.skyhook === undefined && !isComplete)
      : requested.has(key),
  )
}

/** A failure replaces a wait; other reasons why the node is not complete come first. */
export function withFailure(
  snapshot: Snapshot,
  { builder, status, reason, packageReasons = new Map() }: SkyhookPlan,
  { failure }: Failing,
  last: TimedReason | undefined,
): { readonly status: NodeStatus; readonly reason?: TimedReason | undefined } {
  const { nowMs } = snapshot
  const packages = [...packageReasons].map(
    ([name, each]) => [name, withSince(each, last?.packages?.get(name), nowMs)] as const,
  )
  const withPackages = (timedReason: TimedReason): TimedReason =>
    packages.length === 0 ? timedReason : { ...timedReason, packages: new Map(packages) }
  if (!failure || !(reason === undefined || isWait(reason)))
    return { status, reason: reason && withPackages(withSince(reason, last, nowMs)) }
  const isUnfinished = status === 'in_progress' || status === 'waiting'
  const hasSlot = ownSlot(snapshot, builder.view) !== undefined
  const isHeldUp = isUnfinished && holdsWorkUp(snapshot, builder.record, failure)
  return {
    status: isHeldUp ? statusFor(failure.reason, hasSlot) : status,
    reason: withPackages({ ...timed(failure), firstSinceMs: last?.firstSinceMs ?? failure.sinceMs }),
  }
}

/** Nothing of the Skyhook runs on the host while the action fails. */
const holdsWorkUp = (snapshot: Snapshot, record: SkyhookRecord, { action }: Failure): boolean =>
  action !== undefined &&
  action !== 'renewSlot' &&
  !isPlannedOnce(action) &&
  openStepsOf(record).every(({ id }) => snapshot.attempts.get(id)?.state !== 'running')

const timed = ({ reason, message, sinceMs }: Failure): TimedReason => ({
  reason,
  message: reasonMessage(message),
  sinceMs,
})

function withSince(reason: Reason, last: TimedReason | undefined, nowMs: number): TimedReason {
  const message = reasonMessage(reason.message)
  const isUnchanged = last?.reason === reason.reason && last.message === message
  return {
    ...reason,
    message,
    sinceMs: isUnchanged ? last.sinceMs : nowMs,
    firstSinceMs: last?.firstSinceMs ?? last?.sinceMs ?? nowMs,
  }
}

/**
 * The available spec is known to be outdated. It cannot prove that a node has left either: the spec that is being read
 * may select it.
 */
export const isOutdated = (snapshot: Snapshot, view: SkyhookView): boolean =>
  view.stale || (snapshot.areSkyhooksInDoubt === true && !isSelected(view, snapshot))

/**
 * Nothing new is decided until the new spec is read: record, slot, cordon, the watch of pods and the published state
 * stay. Undefined for a Skyhook that does not select the node and never did anything here.
 */
export function planOutdated(
  snapshot: Snapshot,
  view: SkyhookView,
  before: SkyhookRecord | undefined,
): SkyhookPlan | undefined {
  const selected = isSelected(view, snapshot)
  if (!before && !selected) return undefined
  const builder = newPlanBuilder(snapshot, view, recordOfSkyhook(before, view))
  const { lifecycle, published } = builder.record
  builder.asksForSlot = snapshot.slotDenials.has(view.metadata.name) // keeps its place in the line
  return {
    builder,
    status: published?.status ?? (selected ? 'waiting' : 'unknown'),
    complete: !selected && lifecycle === undefined,
    cordon: 'as-is',
    watchPods: snapshot.pods.known ? snapshot.pods.value.since : 'no', // not opened for it, and not closed
  }
}
