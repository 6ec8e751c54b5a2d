/** The next request of the census for a Skyhook, decided by its snapshot, its counts and its memory. Pure. */
import { type Ledger, readLedger } from '../../lease/ledger.ts'
import type { ScopeListing } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import type { SpecVersion } from '../../schemas/annotations.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import { isEqual } from '../../schemas/json.ts'
import type { ConfigUpdates } from '../../schemas/rolled-out-configs.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Agents } from '../model/agent-liveness.ts'
import {
  type BatchPlan,
  type Expectation,
  isIdle,
  looksAfter,
  looksNow,
  nextLookAtMs,
  planBatches,
  type SlotLooks,
} from '../ledger/batch-plan.ts'
import { missingPolicyAtMs, nextFailureAtMs } from '../status/compartment-status.ts'
import type { Counts } from '../model/count.ts'
import {
  imageTagEvents,
  problemEvents,
  type ReportedProblems,
  type SkyhookEvent,
  skippedNodeEvents,
} from '../write/events.ts'
import { type HolderLook, planFinalizer } from '../model/finalizer.ts'
import {
  type AheadLedger,
  aheadLedger,
  dampedCountDueAtMs,
  type LedgerPlan,
  type MatchedCounts,
  nextWorkTimes,
  planLedger,
  type WorkTimes,
} from '../ledger/ledger-plan.ts'
import type { CensusNode, NodeFact } from '../model/node-facts.ts'
import { conditionOf, type SkyhookStatus, statusOf } from '../model/skyhook-status.ts'
import { type MetadataPatch, metadataPatchFor, writeAtMs } from '../write/skyhook-writer.ts'
import { isUrgent, nextStatus, updatesAfterEdit } from '../status/status.ts'

/** One moment of the cluster, all of it from synced lists and watches. */
export type CensusSnapshot = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly agents: Agents
  readonly skyhook: Skyhook
  readonly ledger: Lease | undefined
  /** The policy that the Skyhook names; undefined where it names none. */
  readonly policy: PolicyKnowledge | undefined
}

export type ReconcileInputs = Pick<CensusSnapshot, 'skyhook' | 'ledger' | 'agents'> & {
  readonly counts: Counts
  /** Nodes of the cluster. */
  readonly nodeCount: number
  /** The API server serves the group of NodeWright, and no setting says that it does not count. */
  readonly isNodeWrightServed: boolean
  /** Taken since the last turn. */
  readonly listing: ScopeListing | undefined
  /** Skyhooks were listed since the last turn. */
  readonly areSkyhooksListed: boolean
  /** Monotonic, as all times of this file but `wallMs`. */
  readonly nowMs: number
  readonly wallMs: number
  /** After failures and conflicts, the earliest time of the next request. */
  readonly notBeforeMs: (target: Request['target']) => number
}

/** What the census remembers of a Skyhook. */
export type CensusState = {
  readonly lastCounted?: { readonly generation: number; readonly applied: string; readonly spec: Skyhook['spec'] }
  /** As the status shows them. */
  readonly configUpdates?: ConfigUpdates
  readonly specPropagatedAtMs: number
  /** The first generation that asks for the current work. */
  readonly workGeneration: number
  /** When nodes have seen an edit that this census saw. */
  readonly editPropagatedAtMs: number
  readonly deletionObservedAtMs?: number | undefined
  /** Since the deletion was seen. */
  readonly holderLook?: HolderLook | undefined
  readonly matched?: MatchedCounts | undefined
  readonly ahead?: AheadLedger | undefined
  readonly statusWrittenAtMs?: number
  readonly ledgerWrittenAtMs?: number
  readonly problems?: ReportedProblems
  readonly looks: SlotLooks
  readonly lengths?: WorkTimes
  /** Since when no node of a compartment could ask for a slot; earlier by what previous censuses have waited. */
  readonly idleSinceMs: ReadonlyMap<string, number>
}

export const initialState: CensusState = {
  specPropagatedAtMs: -Infinity,
  workGeneration: 0,
  editPropagatedAtMs: -Infinity,
  looks: new Map(),
  idleSinceMs: new Map(),
}

/** One request: a write, or a read of slots. */
export type Request =
  | { readonly target: 'slots' }
  | { readonly target: 'holders' }
  | { readonly target: 'ledger'; readonly found: Lease | undefined; readonly plan: LedgerPlan }
  | { readonly target: 'metadata'; readonly patch: MetadataPatch; readonly events: readonly SkyhookEvent[] }
  | { readonly target: 'status'; readonly status: SkyhookStatus }

export type Reconciled = {
  readonly state: CensusState
  /** The current one; undefined if it cannot be read. */
  readonly ledger: Ledger | undefined
  /** Of problems that did not exist at the last turn. */
  readonly events: readonly SkyhookEvent[]
  /** Why the ledger stays as it is: a newer version wrote it. */
  readonly newerLedger: string | undefined
  /** A LIST of Skyhooks may show more than the watch. */
  readonly needsList: boolean
  /** The due request, or the time of the next one if nothing changes. */
  readonly next: Request | { readonly target: 'nothing'; readonly untilMs: number }
}

/**
 * Nodes observe an edit and report it within this time. Until then a complete one may not have looked yet (A→B→A). The
 * census does not wait if each node reports that it became complete by this spec, or by a later one.
 */
const specPropagationMs = 1_000
/** The minimum interval of the LISTs that are asked for. */
const listIntervalMs = 30_000

/** The request that is due, the ledger first; without one, when the next may be. */
export function reconcile(before: CensusState, inputs: ReconcileInputs): Reconciled {
  const { skyhook, ledger: lease, agents, counts, nowMs, wallMs, areSkyhooksListed: isListed } = inputs
  const ofSpec = afterSpecChange(before, skyhook, counts.applied, nowMs)
  const { problems, events } = newProblems(before, skyhook, counts)
  const read = lease && readLedger(lease)
  const currentLedger = read?.outcome === 'read' ? read.ledger : undefined
  const newerLedger = read?.outcome === 'refused' && read.isNewer ? read.reason : undefined
  const ahead = aheadLedger(before.ahead, { lease, ledger: currentLedger }, skyhook, { nowMs, isListed })
  const ownLedger = currentLedger?.skyhookUID === skyhook.metadata.uid ? currentLedger : undefined
  const lengths = nextWorkTimes(before.lengths, counts, ownLedger, nowMs)
  const { batches, ...ofBatches } = batchesOf(before, inputs, currentLedger)
  const plan = planLedger({
    skyhook,
    counts,
    ...(batches && { batches }),
    slotTimes: lengths.slotTimes,
    agents: agents.ready,
    currentLedger,
    isKept:
      newerLedger !== undefined ||
      ahead?.isLost === false ||
      // without the policy its batches are unknown
      (counts.policy !== undefined && counts.policy.state !== 'found'),
    matched: before.matched,
    lastWriteMs: before.ledgerWrittenAtMs,
    nowMs,
    wallMs,
  })
  // One that differs from the ledger counts once it is written.
  const matched = isPublished(currentLedger, plan.matched) ? plan.matched : before.matched
  const state: CensusState = { ...before, ...ofSpec, ...ofBatches, problems, ahead, lengths, matched }
  const listsAtMs = ahead?.asksAtMs ?? Infinity
  const needsList = listsAtMs <= nowMs
  const waits = [needsList ? nowMs + listIntervalMs : listsAtMs]
  const result = (next: Reconciled['next'], after = state): Reconciled => ({
    state: after,
    ledger: currentLedger,
    newerLedger,
    events,
    needsList,
    next,
  })
  const isDue = (target: Request['target'], atMs: number): boolean => {
    const dueAtMs = Math.max(atMs, inputs.notBeforeMs(target))
    waits.push(dueAtMs)
    return dueAtMs <= nowMs
  }

  if (isDue('ledger', plan.writeAtMs)) return result({ target: 'ledger', found: lease, plan })
  const areBatchesKnown = batches !== undefined && ahead === undefined && newerLedger === undefined
  if (isDue('slots', areBatchesKnown ? nextLookAtMs(state.looks) : Infinity)) return result({ target: 'slots' })
  const { deletionObservedAtMs, holderLook: look } = state
  const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionObservedAtMs, look, nowMs })
  if (finalizer.action === 'wait') {
    if (isDue('holders', finalizer.looksAtMs)) return result({ target: 'holders' })
    waits.push(finalizer.recheckAtMs)
  }
  const patch = metadataPatchFor(skyhook, finalizer)
  if (patch !== undefined && isDue('metadata', -Infinity))
    return result({ target: 'metadata', patch, events: skippedNodeEvents(finalizer) })

  const { uid } = skyhook.metadata
  const isSeen = haveAllCompleted(counts.nodes, { uid, generation: state.workGeneration })
  const isSpecPropagating = nowMs < state.specPropagatedAtMs && !isSeen
  if (isSpecPropagating) waits.push(state.specPropagatedAtMs)
  const stallsAtWallMs = Math.min(nextFailureAtMs(counts.nodes, wallMs), missingPolicyAtMs({ skyhook, counts }))
  if (stallsAtWallMs > wallMs) waits.push(nowMs + stallsAtWallMs - wallMs)
  const status = nextStatus({
    skyhook,
    counts,
    ledger: currentLedger,
    finalizer,
    isSpecPropagating,
    mayFailuresBeOld: nowMs < state.editPropagatedAtMs,
    configUpdates: state.configUpdates,
    isNodeWrightServed: inputs.isNodeWrightServed,
    nowMs: wallMs,
  })
  const after = { ...state, configUpdates: status.configUpdates ?? {} }
  const statusAtMs = statusDueAtMs(before, statusOf(skyhook), status, agents.ready ?? inputs.nodeCount)
  if (isDue('status', statusAtMs)) return result({ target: 'status', status }, after)
  const countAtMs = Object.values(plan.matched).map(dampedCountDueAtMs)
  return result({ target: 'nothing', untilMs: Math.min(...waits, ...countAtMs) }, after)
}

const isPublished = (ledger: Ledger | undefined, matched: MatchedCounts): boolean =>
  Object.entries(matched).every(([name, { published }]) => ledger?.compartments[name]?.matched === published)

/** The desired batches, and when to look at the slots. Without a usable policy there are no batches. */
function batchesOf(
  { looks: looksBefore, idleSinceMs: idleBefore }: CensusState,
  { skyhook, ledger: lease, counts, listing, nowMs }: ReconcileInputs,
  currentLedger: Ledger | undefined,
): Pick<CensusState, 'looks' | 'idleSinceMs'> & { readonly batches?: BatchPlan } {
  const { policy, compartments } = counts
  if (policy?.state !== 'found') return { looks: looksBefore, idleSinceMs: idleBefore }
  const idle = compartments.filter(({ nodes }) => isIdle(nodes))
  const idleSinceMs = new Map(
    idle.map(({ name }) => {
      const waitedSeconds = currentLedger?.compartments[name]?.batch?.waitedSeconds ?? 0
      return [name, idleBefore.get(name) ?? nowMs - waitedSeconds * 1_000]
    }),
  )
  const listed = listing?.ledgers.find(({ metadata }) => metadata.uid === lease?.metadata.uid)
  // results are written over exactly the ledger that was listed with the slots
  const isOfListing = listed !== undefined && listed.metadata.resourceVersion === lease?.metadata.resourceVersion
  const batches = planBatches({
    skyhook,
    policy,
    counts,
    currentLedger,
    slots: isOfListing ? listing?.slots : undefined,
    idleMs: (name) => nowMs - (idleSinceMs.get(name) ?? nowMs),
  })
  const looks = looksNow(looksBefore, compartments, currentLedger, nowMs)
  const expectationOf = (name: string): Expectation =>
    isOfListing && batches.atRest.has(name) ? 'nothing' : batches.waiting.has(name) ? 'end' : 'by-status'
  return {
    batches,
    idleSinceMs,
    looks: listing === undefined ? looks : looksAfter(looks, compartments, expectationOf, nowMs),
  }
}

/** Nodes may not have seen an edit that changes their work. For a moment their reports are about the previous one. */
function afterSpecChange(before: CensusState, skyhook: Skyhook, applied: string, nowMs: number): CensusState {
  const { generation = 0, deletionTimestamp } = skyhook.metadata
  const isDeleted = deletionTimestamp !== undefined
  const state: CensusState = {
    ...before,
    deletionObservedAtMs: isDeleted ? (before.deletionObservedAtMs ?? nowMs) : undefined,
    holderLook: isDeleted ? before.holderLook : undefined,
  }
  const { lastCounted } = before
  if (lastCounted?.generation === generation && lastCounted.applied === applied) return state
  const isNext = lastCounted !== undefined && generation === lastCounted.generation + 1
  const changesWork =
    lastCounted === undefined ? !isReadyFor(skyhook, generation) : !isNext || lastCounted.applied !== applied
  const propagatedAtMs = nowMs + specPropagationMs
  // the previous census may have reported failures of this spec, and they do not come and go with the census
  const isEdit = lastCounted !== undefined || (statusOf(skyhook)?.observedGeneration ?? generation) !== generation
  const known = before.configUpdates ?? statusOf(skyhook)?.configUpdates ?? {}
  return {
    ...state,
    ...(changesWork && { specPropagatedAtMs: propagatedAtMs, workGeneration: generation }),
    ...(changesWork && isEdit && { editPropagatedAtMs: propagatedAtMs }),
    configUpdates: lastCounted === undefined ? known : updatesAfterEdit(known, lastCounted.spec, skyhook.spec),
    lastCounted: { generation, applied, spec: skyhook.spec },
  }
}

/** Events of problems that did not exist at the last count. */
function newProblems(
  before: CensusState,
  skyhook: Skyhook,
  counts: Counts,
): { readonly problems: ReportedProblems; readonly events: readonly SkyhookEvent[] } {
  const known = before.problems ?? new Set()
  const ofNodes = problemEvents(counts, known)
  const ofImages = imageTagEvents(skyhook.spec ?? {}, known)
  const isTakenOver =
    before.problems === undefined && statusOf(skyhook)?.observedGeneration === skyhook.metadata.generation
  return {
    problems: new Set([...ofNodes.problems, ...ofImages.problems]),
    events: isTakenOver ? [] : [...ofNodes.events, ...ofImages.events], // the previous census reported them
  }
}

function statusDueAtMs(
  { statusWrittenAtMs: lastWriteMs }: CensusState,
  before: SkyhookStatus | undefined,
  next: SkyhookStatus,
  agents: number,
): number {
  return isEqual(next, before) ? Infinity : writeAtMs({ lastWriteMs, agents, isUrgent: isUrgent(before, next) })
}

/** The last census waited long enough before it said so. */
function isReadyFor(skyhook: Skyhook, generation: number): boolean {
  const ready = conditionOf(statusOf(skyhook), 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === generation
}

/** Whether all nodes report that they follow a spec. Pure. */

/**
 * Each node became complete by this spec or by a later one of the same Skyhook. False where a node does not report it:
 * its agent is older, or it was complete before the edit and had nothing to write. False without nodes.
 */
export const haveAllCompleted = (nodes: readonly Pick<NodeFact, 'completedBy'>[], spec: SpecVersion): boolean =>
  nodes.length > 0 &&
  nodes.every(({ completedBy }) => completedBy?.uid === spec.uid && completedBy.generation >= spec.generation)
