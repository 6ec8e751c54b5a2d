/** Reasons outside of the decisions: nothing can be decided, or the Node cannot be written. */
import { reasonKey, skyhooksWith, statusKey } from '../../schemas/annotations.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'
import { worstOf } from '../model/failures.ts'
import { emptyPatch, isEmptyPatch } from '../model/node-patch.ts'
import type { Plan, TimedReason } from '../model/plan.ts'
import type { Failure, Snapshot } from '../model/snapshot.ts'
import { annotationRoom, publishAction, publishFailureKeys } from '../publish/essential-patch.ts'
import { reasonAnnotation, showsReason } from '../publish/node-annotations.ts'
import { timed } from './failing.ts'
import { isSelected } from './gates.ts'
import { isOutdated } from './outdated.ts'

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
