/** One turn of a Skyhook at the census: what is due, by what was counted and what is remembered. No request is sent here. */
import { readLedger, type Ledger } from '../lease/ledger.ts'
import type { Lease } from '../lease/slot.ts'
import { isEqual } from '../schemas/equal.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { Agents } from './agent-liveness.ts'
import { aheadLedger, type AheadLedger } from './ahead-ledger.ts'
import type { Counts } from './count.ts'
import { dampedCountDueAtMs, type DampedCount } from './damped-count.ts'
import { problemEvents, skippedNodeEvents, type ReportedProblems, type SkyhookEvent } from './events.ts'
import { planFinalizer } from './finalizer.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
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
}

/** What the census remembers of a Skyhook from one turn to the next. Times are monotonic ms. */
export type Memory = {
  lastCounted?: { readonly generation: number; readonly applied: string }
  specPropagatedAtMs: number
  deletionObservedAtMs?: number
  matched?: DampedCount
  ahead?: AheadLedger | undefined
  statusWrittenAtMs?: number
  ledgerWrittenAtMs?: number
  problems?: ReportedProblems
  readonly backoffs: Map<Request['target'], { readonly failures: number; readonly untilMs: number }>
}

/** One request of a turn: a write, or the read that says whether a ledger may be replaced. */
export type Request =
  | { readonly target: 'skyhook'; readonly ahead: AheadLedger; readonly ledger: Ledger }
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
  { skyhook, nodes, agents, ledger: lease }: CensusSnapshot,
  counts: Counts,
  { nowMs, wallMs, notBeforeMs }: TurnTimes,
): Turn {
  const { matched, ledgerWrittenAtMs: lastWriteMs, deletionObservedAtMs, specPropagatedAtMs } = memory

  const currentLedger = ledgerIn(lease)
  const ahead = aheadLedger(memory.ahead, { lease, ledger: currentLedger }, skyhook, nowMs)
  memory.ahead = ahead
  const aheadAtMs = Math.max(ahead?.readAtMs ?? Infinity, notBeforeMs('skyhook'))
  if (ahead && currentLedger && aheadAtMs <= nowMs)
    return { request: { target: 'skyhook', ahead, ledger: currentLedger } }
  const plan = planLedger({
    skyhook,
    counts,
    agents: agents.ready,
    currentLedger,
    isAhead: ahead?.isLost === false,
    matched,
    lastWriteMs,
    nowMs,
    wallMs,
  })
  // One that differs from the ledger counts once it is written.
  if (currentLedger?.compartments['']?.matched === plan.matched.published) memory.matched = plan.matched
  const ledgerAtMs = Math.max(plan.writeAtMs, notBeforeMs('ledger'))
  if (ledgerAtMs <= nowMs) return { request: { target: 'ledger', found: lease, plan } }

  const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionObservedAtMs, nowMs })
  const patch = metadataPatchFor(skyhook, finalizer)
  const metadataAtMs = patch === undefined ? Infinity : notBeforeMs('metadata')
  if (patch !== undefined && metadataAtMs <= nowMs)
    return { request: { target: 'metadata', patch, events: skippedNodeEvents(finalizer) } }

  const isSpecPropagating = nowMs < specPropagatedAtMs
  const status = nextStatus({ skyhook, counts, finalizer, isSpecPropagating, nowMs: wallMs })
  const statusAtMs = Math.max(
    statusDueAtMs(memory, statusOf(skyhook), status, agents.ready ?? nodes.size),
    notBeforeMs('status'),
  )
  if (statusAtMs <= nowMs) return { request: { target: 'status', status } }

  const deletionAtMs = finalizer.action === 'wait' ? finalizer.recheckAtMs : Infinity
  const propagatedAtMs = isSpecPropagating ? specPropagatedAtMs : Infinity
  const countAtMs = dampedCountDueAtMs(plan.matched)
  return {
    requeueAtMs: Math.min(aheadAtMs, ledgerAtMs, countAtMs, metadataAtMs, statusAtMs, deletionAtMs, propagatedAtMs),
  }
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
    memory.lastCounted = { generation, applied }
  }
  if (deletionTimestamp === undefined) delete memory.deletionObservedAtMs
  else memory.deletionObservedAtMs ??= nowMs
}

/** Events of problems that were not there at the last count. */
export function newProblems(memory: Memory, skyhook: Skyhook, counts: Counts): readonly SkyhookEvent[] {
  const isTakenOver =
    memory.problems === undefined && statusOf(skyhook)?.observedGeneration === skyhook.metadata.generation
  const { events, problems } = problemEvents(counts, memory.problems ?? new Set())
  memory.problems = problems
  return isTakenOver ? [] : events // the census before reported them
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

function ledgerIn(lease: Lease | undefined): Ledger | undefined {
  const read = lease === undefined ? undefined : readLedger(lease)
  return read?.outcome === 'read' ? read.ledger : undefined
}
