/** One turn of a Skyhook at the census: what is due, by what was counted and what is remembered. No request is sent here. */
import type { ConfigUpdates } from '../schemas/config-updates.ts'
import { readLedger, type Ledger } from '../lease/ledger.ts'
import type { Lease, Slot } from '../lease/slot.ts'
import { isEqual } from '../schemas/equal.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { Agents } from './agent-liveness.ts'
import { aheadLedger, type AheadLedger } from './ahead-ledger.ts'
import { updatesAfterEdit } from './config-updates.ts'
import type { Counts } from './count.ts'
import { type BatchPlan, isIdle, planBatches } from './batch-plan.ts'
import { dampedCountDueAtMs } from './damped-count.ts'
import { type Expectation, looksAfter, looksNow, nextLookAtMs, type SlotLooks } from './slot-looks.ts'
import type { PolicyKnowledge } from '../schemas/deployment-policy.ts'
import { imageTagEvents, problemEvents, skippedNodeEvents, type ReportedProblems, type SkyhookEvent } from './events.ts'
import { type HolderLook, planFinalizer } from './finalizer.ts'
import { type WorkTimes, nextWorkTimes } from './work-times.ts'
import { planLedger, type LedgerPlan, type MatchedCounts } from './ledger-plan.ts'
import type { CensusNode } from './node-facts.ts'
import { conditionOf, statusOf, type SkyhookStatus } from './skyhook-status.ts'
import { metadataPatchFor, type MetadataPatch } from './skyhook-writer.ts'
import { isUrgent, nextStatus } from './status.ts'
import { writeAtMs } from './write-throttle.ts'

/** What is seen at one moment, all of it from lists and watches that can be believed. */
export type CensusSnapshot = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly agents: Agents
  readonly skyhook: Skyhook
  readonly ledger: Lease | undefined
  /** The policy that the Skyhook names; undefined where it names none. */
  readonly policy: PolicyKnowledge | undefined
  /** The API server serves the group of NodeWright, and nobody has said that it does not count. */
  readonly isNodeWrightServed: boolean
}

/** A consistent LIST of the ledger and of all slots of a Skyhook. */
export type SlotListing = { readonly ledgers: readonly Lease[]; readonly slots: readonly Slot[] }

/** What the census remembers of a Skyhook from one turn to the next. Times are monotonic ms. */
export type Memory = {
  lastCounted?: { readonly generation: number; readonly applied: string; readonly spec: Skyhook['spec'] }
  /** As the status is to show them. */
  configUpdates?: ConfigUpdates
  specPropagatedAtMs: number
  /** When nodes have seen an edit that this census saw. */
  editPropagatedAtMs: number
  deletionObservedAtMs?: number
  /** Since the deletion was seen. */
  holderLook?: HolderLook | undefined
  matched?: MatchedCounts
  ahead?: AheadLedger | undefined
  /** Why the ledger is left as it is: a newer version wrote it. */
  newerLedger?: string | undefined
  statusWrittenAtMs?: number
  ledgerWrittenAtMs?: number
  problems?: ReportedProblems
  looks: SlotLooks
  lengths?: WorkTimes
  /** Taken since the last turn. */
  listing?: SlotListing | undefined
  /** Since when nobody in a compartment could ask for a slot; earlier by what censuses before have waited. */
  readonly idleSinceMs: Map<string, number>
  readonly backoffs: Map<Request['target'], { readonly failures: number; readonly untilMs: number }>
}

/** One request of a turn: a write, or the read that says whether a ledger may be replaced. */
export type Request =
  | { readonly target: 'skyhook'; readonly ahead: AheadLedger; readonly ledger: Ledger }
  | { readonly target: 'slots' }
  | { readonly target: 'holders' }
  | { readonly target: 'ledger'; readonly found: Lease | undefined; readonly plan: LedgerPlan }
  | { readonly target: 'metadata'; readonly patch: MetadataPatch; readonly events: readonly SkyhookEvent[] }
  | { readonly target: 'status'; readonly status: SkyhookStatus }

/** `notBeforeMs`: after failures and conflicts, the earliest time of the next write. */
type TurnTimes = {
  readonly nowMs: number
  readonly wallMs: number
  readonly notBeforeMs: (target: Request['target']) => number
}

export type Turn = { readonly request: Request } | { readonly requeueAtMs: number }

/** Nodes see an edit within this time and say so; until then a complete one may not have looked yet (A→B→A). */
const specPropagationMs = 1_000

/** The request that is due, the ledger first; without one, when the next may be. */
export function planTurn(
  memory: Memory,
  { skyhook, nodes, agents, ledger: lease, isNodeWrightServed }: CensusSnapshot,
  counts: Counts,
  { nowMs, wallMs, notBeforeMs }: TurnTimes,
): Turn {
  const { matched, ledgerWrittenAtMs: lastWriteMs, deletionObservedAtMs, specPropagatedAtMs } = memory

  const read = lease && readLedger(lease)
  const currentLedger = read?.outcome === 'read' ? read.ledger : undefined
  const isNewer = read?.outcome === 'refused' && read.isNewer
  memory.newerLedger = isNewer ? read.reason : undefined
  const ahead = aheadLedger(memory.ahead, { lease, ledger: currentLedger }, skyhook, nowMs)
  memory.ahead = ahead
  const ownLedger = currentLedger?.skyhookUID === skyhook.metadata.uid ? currentLedger : undefined
  const lengths = nextWorkTimes(memory.lengths, counts, ownLedger, nowMs)
  memory.lengths = lengths
  const aheadAtMs = Math.max(ahead?.readAtMs ?? Infinity, notBeforeMs('skyhook'))
  if (ahead && currentLedger && aheadAtMs <= nowMs)
    return { request: { target: 'skyhook', ahead, ledger: currentLedger } }
  const batches = batchesOf(memory, skyhook, counts, { lease, currentLedger }, nowMs)
  const plan = planLedger({
    skyhook,
    counts,
    ...(batches && { batches }),
    slotTimes: lengths.slotTimes,
    agents: agents.ready,
    currentLedger,
    // without the policy nobody can say what its batches are
    isKept: isNewer || ahead?.isLost === false || (counts.policy !== undefined && counts.policy.state !== 'found'),
    matched,
    lastWriteMs,
    nowMs,
    wallMs,
  })
  // One that differs from the ledger counts once it is written.
  if (isPublished(currentLedger, plan.matched)) memory.matched = plan.matched
  const ledgerAtMs = Math.max(plan.writeAtMs, notBeforeMs('ledger'))
  if (ledgerAtMs <= nowMs) return { request: { target: 'ledger', found: lease, plan } }
  const areBatchesKnown = batches !== undefined && ahead === undefined && !isNewer
  const looksAtMs = Math.max(areBatchesKnown ? nextLookAtMs(memory.looks) : Infinity, notBeforeMs('slots'))
  if (looksAtMs <= nowMs) return { request: { target: 'slots' } }

  const look = memory.holderLook
  const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionObservedAtMs, look, nowMs })
  const holdersAtMs = Math.max(finalizer.action === 'wait' ? finalizer.looksAtMs : Infinity, notBeforeMs('holders'))
  if (holdersAtMs <= nowMs) return { request: { target: 'holders' } }
  const patch = metadataPatchFor(skyhook, finalizer)
  const metadataAtMs = patch === undefined ? Infinity : notBeforeMs('metadata')
  if (patch !== undefined && metadataAtMs <= nowMs)
    return { request: { target: 'metadata', patch, events: skippedNodeEvents(finalizer) } }

  const isSpecPropagating = nowMs < specPropagatedAtMs
  const status = nextStatus({
    skyhook,
    counts,
    ledger: currentLedger,
    finalizer,
    isSpecPropagating,
    mayFailuresBeOld: nowMs < memory.editPropagatedAtMs,
    configUpdates: memory.configUpdates,
    isNodeWrightServed,
    nowMs: wallMs,
  })
  memory.configUpdates = status.configUpdates ?? {}
  const statusAtMs = Math.max(
    statusDueAtMs(memory, statusOf(skyhook), status, agents.ready ?? nodes.size),
    notBeforeMs('status'),
  )
  if (statusAtMs <= nowMs) return { request: { target: 'status', status } }

  const deletionAtMs = finalizer.action === 'wait' ? finalizer.recheckAtMs : Infinity
  const propagatedAtMs = isSpecPropagating ? specPropagatedAtMs : Infinity
  const countAtMs = Math.min(...Object.values(plan.matched).map(dampedCountDueAtMs))
  return {
    requeueAtMs: Math.min(
      aheadAtMs,
      ledgerAtMs,
      looksAtMs,
      holdersAtMs,
      countAtMs,
      metadataAtMs,
      statusAtMs,
      deletionAtMs,
      propagatedAtMs,
    ),
  }
}

const isPublished = (ledger: Ledger | undefined, matched: MatchedCounts): boolean =>
  Object.entries(matched).every(([name, { published }]) => ledger?.compartments[name]?.matched === published)

/** The batches as they are to be, and when to look at the slots; undefined without a policy to go by. */
function batchesOf(
  memory: Memory,
  skyhook: Skyhook,
  counts: Counts,
  { lease, currentLedger }: { readonly lease: Lease | undefined; readonly currentLedger: Ledger | undefined },
  nowMs: number,
): BatchPlan | undefined {
  const { policy } = counts
  const { listing } = memory
  memory.listing = undefined
  if (policy?.state !== 'found') return undefined
  for (const { name, nodes } of counts.compartments)
    if (!isIdle(nodes)) memory.idleSinceMs.delete(name)
    else if (!memory.idleSinceMs.has(name)) {
      const waitedSeconds = currentLedger?.compartments[name]?.batch?.waitedSeconds ?? 0
      memory.idleSinceMs.set(name, nowMs - waitedSeconds * 1_000)
    }
  const listed = listing?.ledgers.find(({ metadata }) => metadata.uid === lease?.metadata.uid)
  // results go out over exactly the ledger that was listed with the slots
  const isOfListing = listed !== undefined && listed.metadata.resourceVersion === lease?.metadata.resourceVersion
  const plan = planBatches({
    skyhook,
    policy,
    counts,
    currentLedger,
    slots: isOfListing ? listing?.slots : undefined,
    idleMs: (name) => nowMs - (memory.idleSinceMs.get(name) ?? nowMs),
  })
  const looks = looksNow(memory.looks, counts.compartments, currentLedger, nowMs)
  const expectationOf = (name: string): Expectation =>
    isOfListing && plan.atRest.has(name) ? 'nothing' : plan.waiting.has(name) ? 'end' : 'by-status'
  memory.looks = listing === undefined ? looks : looksAfter(looks, counts.compartments, expectationOf, nowMs)
  return plan
}

/** Nodes may not have seen an edit that changes their work: it takes a moment until what they say is about it. */
export function noteSpecChange(memory: Memory, skyhook: Skyhook, applied: string, nowMs: number): void {
  const { generation = 0, deletionTimestamp } = skyhook.metadata
  const { lastCounted } = memory
  if (lastCounted?.generation !== generation || lastCounted.applied !== applied) {
    const isNext = lastCounted !== undefined && generation === lastCounted.generation + 1
    const changesWork =
      lastCounted === undefined ? !isReadyFor(skyhook, generation) : !isNext || lastCounted.applied !== applied
    if (changesWork) memory.specPropagatedAtMs = nowMs + specPropagationMs
    // the census before may have told of failures of this spec, and they do not come and go with the census
    const isEdit = lastCounted !== undefined || (statusOf(skyhook)?.observedGeneration ?? generation) !== generation
    if (changesWork && isEdit) memory.editPropagatedAtMs = memory.specPropagatedAtMs
    const known = memory.configUpdates ?? statusOf(skyhook)?.configUpdates ?? {}
    memory.configUpdates = lastCounted === undefined ? known : updatesAfterEdit(known, lastCounted.spec, skyhook.spec)
    memory.lastCounted = { generation, applied, spec: skyhook.spec }
  }
  if (deletionTimestamp === undefined) {
    delete memory.deletionObservedAtMs
    delete memory.holderLook
  } else memory.deletionObservedAtMs ??= nowMs
}

/** Events of problems that were not there at the last count. */
export function newProblems(memory: Memory, skyhook: Skyhook, counts: Counts): readonly SkyhookEvent[] {
  const isTakenOver =
    memory.problems === undefined && statusOf(skyhook)?.observedGeneration === skyhook.metadata.generation
  const known = memory.problems ?? new Set()
  const ofNodes = problemEvents(counts, known)
  const ofImages = imageTagEvents(skyhook.spec ?? {}, known)
  memory.problems = new Set([...ofNodes.problems, ...ofImages.problems])
  return isTakenOver ? [] : [...ofNodes.events, ...ofImages.events] // the census before reported them
}

function statusDueAtMs(memory: Memory, before: SkyhookStatus | undefined, next: SkyhookStatus, agents: number): number {
  if (isEqual(next, before)) return Infinity
  return writeAtMs({ lastWriteMs: memory.statusWrittenAtMs, agents, isUrgent: isUrgent(before, next) })
}

/** The last census waited long enough before it said so. */
function isReadyFor(skyhook: Skyhook, generation: number): boolean {
  const ready = conditionOf(statusOf(skyhook), 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === generation
}

/** The ledger in its Lease; undefined where it cannot be read. */
export function ledgerIn(lease: Lease | undefined): Ledger | undefined {
  const read = lease === undefined ? undefined : readLedger(lease)
  return read?.outcome === 'read' ? read.ledger : undefined
}
