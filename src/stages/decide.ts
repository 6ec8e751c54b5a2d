import { reasonReportDelayMs } from '../schemas/catalogue/reason.ts'
import { type Journal, journalVersion, type SkyhookRecord } from '../schemas/journal.ts'
import { ownValue } from '../schemas/json.ts'
import type { NodePatch } from '../schemas/kubernetes.ts'
import type { NodeStatus } from '../schemas/skyhook.ts'
import { publishedOf } from '../schemas/published.ts'
import { NodeSpecBuilder } from './drain/node-spec-builder.ts'
import { hasRequiredTaint } from './drain/node-spec.ts'
import type { SkyhookPlan } from './model/plan-builder.ts'
import { type Action, isEmptyPatch, mergePatches, type Plan, type StageEvent, type TimedReason } from './model/plan.ts'
import type { PodWatch } from './model/pods.ts'
import type { SkyhookView, Snapshot } from './model/snapshot.ts'
import { recordBoot } from './package/run-requests.ts'
import { hostPatch, publishAction } from './publish/essential-patch.ts'
import { nextPublished, nodeShowsComplete, removalPatch, skyhookPatch } from './publish/node-annotations.ts'
import { existingEdit, reconcileAnnotations } from './publish/reconcile-annotations.ts'
import { taintCondition } from './publish/taint-condition.ts'
import { followStaticPods } from './skyhook/control-plane.ts'
import { planDeleted, planUnselected } from './skyhook/departure.ts'
import { isDisabled, isSelected, specProblem } from './skyhook/gates.ts'
import { otherOperatorGate } from './skyhook/other-operator.ts'
import { planSkyhook } from './skyhook/plan-skyhook.ts'
import { surplusSlots } from './skyhook/slot.ts'
import {
  failingFor,
  isOutdated,
  planOutdated,
  reasonsPatch,
  staleReasonsPatch,
  unpublishedReasons,
  unreadReasons,
  withFailure,
} from './skyhook/undecided.ts'

/** The decision about one Skyhook: its next record, and what follows from it. */
export type SkyhookDecision = {
  readonly name: string
  /** As published, now or once it has lasted. */
  readonly status: NodeStatus
  /** Undefined until a spec of it was decided on. */
  readonly record: SkyhookRecord | undefined
  readonly reason?: TimedReason | undefined
  readonly actions: readonly Action[]
  readonly events: readonly StageEvent[]
  readonly needed: ReadonlySet<string>
  readonly asksForSlot: boolean
  readonly patch: NodePatch
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
  readonly requeueAtMs: number
  readonly usesControlPlane: boolean
  /** The Skyhook selects this node; counts for the runtime-required taint. */
  readonly selected?:
    | { readonly view: SkyhookView; readonly isComplete: boolean; readonly isUntouched: boolean }
    | undefined
  /** Skyhooks of lower priority wait for it. */
  readonly isBlocking: boolean
}

/** The decisions so far, and the journal that the next one sees. */
type Fold = { readonly journal: Journal; readonly decisions: readonly SkyhookDecision[] }

/**
 * Uncordon precedes release: there may be an unknown cordon that the slot covers, for example after a restore of etcd.
 * An unconfirmed slot goes back as well. Pods leave only under a cordon, and the known cordon may be gone with a Node
 * that was deleted and registered again.
 */
const needsCertainNode = (action: Action): boolean =>
  action.do === 'releaseSlot' || action.do === 'confirmSlot' || action.do === 'evict'

/**
 * The agent's decision: from everything it knows to a plan. Pure and level-triggered: the same snapshot gives the same
 * plan, and events only trigger it again.
 */
export function decide(snapshot: Snapshot, lastReasons: ReadonlyMap<string, TimedReason>): Plan {
  const reconciled = reconcileAnnotations(recordBoot(snapshot.journal, snapshot), snapshot.node)
  const events = [...reconciled.events]
  const spec = new NodeSpecBuilder({ ...snapshot, journal: reconciled.journal }, events)
  const listed = decideMember(snapshot, { journal: reconciled.journal, decisions: [] }, lastReasons)
  const { journal, decisions } = decideDeleted(snapshot, listed, lastReasons)
  const cordonAtMs = decisions.map(({ name, cordon }) => spec.cordon(name, cordon))
  for (const { selected } of decisions) if (selected) spec.required(selected)
  for (const mark of marksWithoutOwner(snapshot, journal, spec.marks())) spec.cordon(mark, 'off')

  const change = spec.finish(journal)
  const { staticPods, ...staticPodWait } = followStaticPods(snapshot, journal)
  const unread = unreadReasons(snapshot)
  const patches = [
    ...decisions.map((decision) => decision.patch),
    reasonsPatch(snapshot, unread.reasons),
    staleReasonsPatch(snapshot, journal, new Set(decisions.map(({ name }) => name))),
    change.patch,
    hostPatch(snapshot),
  ]
  const taint = taintCondition(snapshot, !patches.every(isEmptyPatch))
  const patch = mergePatches([...patches, taint.patch])
  const unpublished = unpublishedReasons(snapshot, decisions)
  const reasons: readonly (readonly [string, TimedReason])[] = [
    ...unread.reasons,
    ...unpublished.reasons,
    ...decisions.flatMap(({ name, reason }) => (reason ? [[name, reason] as const] : [])),
  ]
  const actions = [
    ...decisions.flatMap((decision) => decision.actions),
    ...surplusSlots(snapshot, {
      journal,
      needsControlPlane:
        staticPodWait.areMissing ||
        decisions.some(({ usesControlPlane, cordon }) => usesControlPlane || cordon === 'on'),
    }),
  ]
  const certain = snapshot.isNodeInDoubt === true ? actions.filter((action) => !needsCertainNode(action)) : actions
  const reportAtMs = reasons.map(([, { sinceMs }]) => sinceMs + reasonReportDelayMs)
  const allEvents = [...events, ...decisions.flatMap((decision) => decision.events)]
  const reboots = (snapshot.journal.reboots ?? 0) + allEvents.filter(isRebootMade).length
  return {
    journal: {
      v: journalVersion,
      nodeUid: snapshot.node.metadata.uid,
      bootId: snapshot.bootId,
      ...change.journalFields,
      ...taint.journalFields,
      ...(staticPods && { staticPods }),
      ...(reboots > 0 && { reboots }),
      skyhooks: journal.skyhooks,
    },
    actions: [...certain, ...(isEmptyPatch(patch) ? [] : [publishAction(snapshot, patch)])],
    reasons: new Map(reasons),
    events: allEvents,
    needed: new Set(decisions.flatMap(({ needed }) => [...needed])),
    slotRequests: new Set(decisions.filter(({ asksForSlot }) => asksForSlot).map(({ name }) => name)),
    watchPods: strongestWatch([...decisions.map(({ watchPods }) => watchPods), staticPodWait.watchPods]),
    requeueAtMs: Math.min(
      Infinity,
      unread.recheckAtMs,
      unpublished.recheckAtMs,
      taint.recheckAtMs,
      staticPodWait.recheckAtMs,
      ...cordonAtMs,
      ...decisions.map(({ requeueAtMs }) => requeueAtMs),
      ...reportAtMs.filter((atMs) => atMs > snapshot.nowMs),
    ),
  }
}

const isRebootMade = (event: StageEvent): boolean => event.type === 'interrupted' && event.interrupt === 'reboot'

/**
 * The decisions behind a plan, for tools that explain one: for the Skyhooks of the cluster, by priority. A Skyhook that
 * does not select the node, and never did anything there, has no decision.
 */
export function decisionsOf(snapshot: Snapshot): readonly SkyhookDecision[] {
  const { journal } = reconcileAnnotations(recordBoot(snapshot.journal, snapshot), snapshot.node)
  return decideMember(snapshot, { journal, decisions: [] }, new Map()).decisions
}

/**
 * The same decision ends the joining of the node and starts work on it. Once nothing required is left, the taint goes,
 * perhaps long before the Node shows it, and no work may start that counts no capacity.
 */
function decideMember(snapshot: Snapshot, start: Fold, lastReasons: ReadonlyMap<string, TimedReason>): Fold {
  const listed = decideListed(snapshot, start, lastReasons)
  if (!hasRequiredTaint(snapshot.node, snapshot.settings.runtimeRequiredTaint)) return listed
  const spec = new NodeSpecBuilder({ ...snapshot, journal: start.journal }, [])
  for (const { selected } of listed.decisions) if (selected) spec.required(selected)
  return spec.hasJoined() ? decideListed({ ...snapshot, hasJoined: true }, start, lastReasons) : listed
}

/** By priority: each sees the decisions of the ones before it. */
function decideListed(snapshot: Snapshot, start: Fold, lastReasons: ReadonlyMap<string, TimedReason>): Fold {
  const views = snapshot.skyhooks.known ? sortByPriority(snapshot.skyhooks.value) : []
  return views.reduce(({ journal, decisions }, view) => {
    const preceding = decisions.find(({ isBlocking }) => isBlocking)?.name
    const decision = decideSkyhook({ ...snapshot, journal }, view, preceding, lastReasons.get(view.metadata.name))
    return decision
      ? { journal: withRecord(journal, decision), decisions: [...decisions, decision] }
      : { journal, decisions }
  }, start)
}

/** Skyhooks of the journal that are no longer in the cluster. */
function decideDeleted(snapshot: Snapshot, listed: Fold, lastReasons: ReadonlyMap<string, TimedReason>): Fold {
  if (!snapshot.skyhooks.known) return listed
  const present = new Set(snapshot.skyhooks.value.map(({ metadata }) => metadata.name))
  const deleted = Object.entries(listed.journal.skyhooks).filter(([name]) => !present.has(name))
  return deleted.reduce(({ journal, decisions }, [name, before]) => {
    const decision = decideDeletedSkyhook({ ...snapshot, journal }, name, before, lastReasons.get(name))
    return { journal: withRecord(journal, decision), decisions: [...decisions, decision] }
  }, listed)
}

const withRecord = (journal: Journal, { name, record }: SkyhookDecision): Journal =>
  record === undefined ? journal : { ...journal, skyhooks: { ...journal.skyhooks, [name]: record } }

function decideSkyhook(
  snapshot: Snapshot,
  view: SkyhookView,
  precedingSkyhook: string | undefined,
  lastReason: TimedReason | undefined,
): SkyhookDecision | undefined {
  const { name } = view.metadata
  const planned = planFor(snapshot, view, precedingSkyhook)
  if (!planned) return undefined
  const { builder, cordon, watchPods, complete: isComplete, isUntouched = false } = planned
  const failing = failingFor(snapshot, { skyhook: name, actions: builder.actions, isComplete })
  const { status, reason: decided } = withFailure(snapshot, planned, failing, lastReason)
  // until a new spec is read, the node keeps its reason to wait
  const reason = decided ?? (isOutdated(snapshot, view) ? lastReason : undefined)
  const { record, recheckAtMs, ...patch } = publicationOf(snapshot, planned, status, reason)
  return {
    name,
    status,
    record,
    reason,
    actions: builder.actions,
    events: builder.events,
    needed: builder.needed,
    asksForSlot: builder.asksForSlot,
    patch,
    cordon,
    watchPods,
    requeueAtMs: Math.min(recheckAtMs, builder.requeueAtMs, failing.recheckAtMs),
    usesControlPlane: builder.usesControlPlane,
    selected: isSelected(view, snapshot) ? { view, isComplete, isUntouched } : undefined,
    isBlocking: !isComplete && blocksLowerPriority(view, snapshot),
  }
}

/** An outdated spec decides nothing, especially not that the node has left. */
function planFor(snapshot: Snapshot, view: SkyhookView, precedingSkyhook: string | undefined): SkyhookPlan | undefined {
  const before = ownValue(snapshot.journal.skyhooks, view.metadata.name)
  if (isOutdated(snapshot, view)) return planOutdated(snapshot, view, before)
  return isSelected(view, snapshot)
    ? planSkyhook(snapshot, view, before, precedingSkyhook)
    : planUnselected(snapshot, view, before)
}

/**
 * What the Node should show of a plan, and the record of that. Before the first decision on a spec there is no record:
 * the traces of other agents on Node and host have not been read yet, and only the reason is shown.
 */
function publicationOf(
  snapshot: Snapshot,
  { builder, isUntouched = false }: SkyhookPlan,
  status: NodeStatus,
  reason: TimedReason | undefined,
): NodePatch & { readonly record: SkyhookRecord | undefined; readonly recheckAtMs: number } {
  const { view } = builder
  const { name } = view.metadata
  const isUnread = isOutdated(snapshot, view) && !Object.hasOwn(snapshot.journal.skyhooks, name)
  if (isUntouched || isUnread) {
    const patch = reasonsPatch(snapshot, new Map(reason ? [[name, reason]] : []))
    return { ...patch, record: undefined, recheckAtMs: Infinity }
  }
  const isContradicted = status !== 'complete' && nodeShowsComplete(snapshot, view)
  const { published, recheckAtMs } = nextPublished(builder.record, status, reason, snapshot, isContradicted)
  const last = builder.record.published
  const record =
    published === undefined || published === last
      ? builder.record
      : {
          ...builder.record,
          published: { ...published, before: publishedOf(snapshot.node, name).state },
          rev: published.rev,
          ...(last === undefined && existingEdit(snapshot.node, name)),
        }
  const { recheckAtMs: patchRecheckAtMs, ...patch } = skyhookPatch(snapshot, name, record, reason)
  return { ...patch, record, recheckAtMs: Math.min(recheckAtMs, patchRecheckAtMs) }
}

function decideDeletedSkyhook(
  snapshot: Snapshot,
  name: string,
  before: SkyhookRecord,
  lastReason: TimedReason | undefined,
): SkyhookDecision {
  const planned = planDeleted(snapshot, name, before)
  const { builder, status, cordon, watchPods, complete: isComplete } = planned
  const { record, actions, events, needed } = builder
  const failing = failingFor(snapshot, { skyhook: name, actions, isComplete })
  const { reason } = withFailure(snapshot, planned, failing, lastReason)
  const { recheckAtMs, ...patch } = record.orphaned
    ? { ...removalPatch(snapshot, name), recheckAtMs: Infinity }
    : skyhookPatch(snapshot, name, record, reason)
  return {
    name,
    status,
    record,
    reason,
    actions,
    events,
    needed,
    asksForSlot: false,
    patch,
    cordon,
    watchPods,
    requeueAtMs: Math.min(recheckAtMs, builder.requeueAtMs, failing.recheckAtMs),
    usesControlPlane: false,
    isBlocking: false,
  }
}

/**
 * Marks of Skyhooks without a decision, now or before: these are gone, or do not select the node. For an outdated spec
 * that is not known. If another operator may have a copy of a mark, that operator must remove it.
 */
function marksWithoutOwner(snapshot: Snapshot, journal: Journal, marks: readonly string[]): readonly string[] {
  const { skyhooks } = snapshot
  if (!skyhooks.known) return []
  const views = new Map(skyhooks.value.map((view) => [view.metadata.name, view]))
  return marks.filter((mark) => {
    const view = views.get(mark)
    if (Object.hasOwn(journal.skyhooks, mark) || (view && isOutdated(snapshot, view))) return false
    return otherOperatorGate(view ?? { metadata: { name: mark } }, snapshot) === undefined
  })
}

/**
 * A later Skyhook waits for this one while it is not complete: its spec is valid, or its work has started here and only
 * an outdated spec does not request it.
 */
const blocksLowerPriority = (view: SkyhookView, snapshot: Snapshot): boolean =>
  !isSelected(view, snapshot) || (!isDisabled(view) && specProblem(view) === undefined)

function strongestWatch(asked: readonly PodWatch[]): PodWatch {
  const watches = new Set(asked)
  return watches.has('cordoned') ? 'cordoned' : watches.has('any') ? 'any' : 'no'
}

/** The operator's default when spec.priority is absent. */
const defaultPriority = 200

const priorityOf = (view: SkyhookView): number => view.spec.priority ?? defaultPriority

/** Order in which Skyhooks work on a node: lower priority number first, then by name. */
function sortByPriority(skyhooks: readonly SkyhookView[]): SkyhookView[] {
  return [...skyhooks].sort((a, b) => priorityOf(a) - priorityOf(b) || (a.metadata.name < b.metadata.name ? -1 : 1))
}
