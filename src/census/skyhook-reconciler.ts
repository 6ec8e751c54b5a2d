/** One Skyhook at the census: counted again and again, written when something changed and a write is due. */
import { isDeepStrictEqual } from 'node:util'
import { isNotFound } from '../kube/errors.ts'
import { requestBackoff } from '../kube/retry.ts'
import { readLedger, writeLedger, type Ledger } from '../lease/ledger.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { backoffMs } from '../schemas/backoff.ts'
import type { Random } from '../schemas/clock.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { Agents } from './agent-liveness.ts'
import { afterRead, aheadLedger, type AheadLedger } from './ahead-ledger.ts'
import { countSelectedNodes, type Counts } from './count.ts'
import { dampedCountDueAtMs, type DampedCount } from './damped-count.ts'
import {
  problemEvents,
  skippedNodeEvents,
  transitionEvents,
  type ReportedProblems,
  type SkyhookEvent,
} from './events.ts'
import { planFinalizer } from './finalizer.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import type { CensusNode } from './node-facts.ts'
import { createOwnWrites } from './own-writes.ts'
import { conditionOf, statusOf, type SkyhookStatus } from './skyhook-status.ts'
import { metadataPatchFor, patchSkyhookMetadata, writeStatus, type MetadataPatch } from './skyhook-writer.ts'
import { isUrgent, nextStatus } from './status.ts'
import { writeAtMs } from './write-throttle.ts'

/** What is seen at one moment, all of it from lists and watches that can be believed. */
export type CensusSnapshot = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly agents: Agents
  readonly skyhook: Skyhook
  readonly ledger: Lease | undefined
}

export type SkyhookReconcilerOptions = {
  readonly leases: Leases
  readonly random: Random
  /** The current snapshot; undefined = something of it cannot be believed, or the Skyhook is gone. */
  readonly observe: () => CensusSnapshot | undefined
  readonly report: (skyhook: Skyhook, event: SkyhookEvent) => void
  /** A write failed; it is tried again later. */
  readonly onFailed: (error: unknown) => void
  readonly signal: AbortSignal
}

export type SkyhookReconciler = {
  /**
   * Counts, and writes at most one thing: what was counted before a write may be old after it. Resolves with the moment
   * (monotonic ms) of the next turn if nothing changes. Never throws for what a server answers.
   */
  reconcile(): Promise<number>
  /** The watch showed the Skyhook, or its ledger, in this version. */
  observed(what: 'skyhook' | 'ledger', resourceVersion: string): void
  /** A LIST was complete: what the watch shows counts, also where it does not show our last write. */
  listed(): void
}

/** What the census remembers of a Skyhook from one turn to the next. Times are monotonic ms. */
type Memory = {
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
type Request =
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

type Turn = { readonly request: Request } | { readonly requeueAtMs: number }

/** Nodes see an edit within this time and say so; until then a complete one may not have looked yet (A→B→A). */
const specPropagationMs = 1_000

export function createSkyhookReconciler(options: SkyhookReconcilerOptions): SkyhookReconciler {
  const { leases, random, signal } = options
  const { transport, clock } = leases
  const own = { skyhook: createOwnWrites<Skyhook>(clock), ledger: createOwnWrites<Lease>(clock) }
  const memory: Memory = { specPropagatedAtMs: -Infinity, backoffs: new Map() }
  const report = (skyhook: Skyhook, events: readonly SkyhookEvent[]): void => {
    for (const event of events) options.report(skyhook, event)
  }

  const readSkyhook = async ({ metadata: { name } }: Skyhook): Promise<Skyhook | undefined> => {
    try {
      return await transport.json<Skyhook>('GET', `${skyhooksPath}/${name}`, { signal })
    } catch (error) {
      if (isNotFound(error)) return undefined // the watch shows it soon
      throw error
    }
  }

  const carryOut = async (request: Request, skyhook: Skyhook): Promise<void> => {
    switch (request.target) {
      case 'skyhook': {
        const { ahead, ledger } = request
        memory.ahead = afterRead(ahead, ledger, await readSkyhook(skyhook), clock.monotonicMs())
        return
      }
      case 'ledger': {
        const ownWrite = own.ledger.begin()
        const target = { skyhook: skyhook.metadata, found: request.found }
        const answer = await writeLedger(leases, target, request.plan.ledger, signal)
        if (answer.outcome === 'conflict') return ownWrite.conflicted()
        ownWrite.written(answer.lease)
        memory.matched = request.plan.matched
        memory.ledgerWrittenAtMs = clock.monotonicMs()
        return
      }
      case 'metadata': {
        const ownWrite = own.skyhook.begin()
        report(skyhook, request.events)
        const answer = await patchSkyhookMetadata(transport, skyhook, request.patch, signal)
        if (answer.outcome === 'conflict') return ownWrite.conflicted()
        return ownWrite.written(answer.skyhook)
      }
      case 'status': {
        const ownWrite = own.skyhook.begin()
        const answer = await writeStatus(transport, skyhook, request.status, signal)
        if (answer.outcome === 'conflict') return ownWrite.conflicted()
        ownWrite.written(answer.skyhook)
        memory.statusWrittenAtMs = clock.monotonicMs()
        report(skyhook, transitionEvents(statusOf(skyhook), request.status))
      }
    }
  }

  /** How a request ends decides when to look again. One that fails holds the others back for a turn only. */
  const attempt = async (request: Request, skyhook: Skyhook): Promise<number> => {
    const { target } = request
    try {
      await carryOut(request, skyhook)
      memory.backoffs.delete(target)
      return clock.monotonicMs()
    } catch (error) {
      if (signal.aborted) return Infinity
      options.onFailed(error)
      const failures = (memory.backoffs.get(target)?.failures ?? 0) + 1
      const nowMs = clock.monotonicMs()
      memory.backoffs.set(target, { failures, untilMs: nowMs + backoffMs(failures, requestBackoff, random.number()) })
      return nowMs
    }
  }

  return {
    observed: (what, resourceVersion) => own[what].observed(resourceVersion),
    listed() {
      own.skyhook.listed()
      own.ledger.listed()
    },

    async reconcile() {
      const observed = options.observe()
      if (observed === undefined) return Infinity
      const skyhook = own.skyhook.latest() ?? observed.skyhook
      const snapshot = { ...observed, skyhook, ledger: own.ledger.latest() ?? observed.ledger }
      const { metadata, spec } = skyhook
      if (metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0) return Infinity // gone
      const counts = countSelectedNodes({ metadata, spec, stale: false }, observed.nodes.values(), observed.agents)
      const nowMs = clock.monotonicMs()
      noteSpecChange(memory, skyhook, counts.applied, nowMs)
      report(skyhook, newProblems(memory, skyhook, counts))
      const notBeforeMs = (target: Request['target']): number =>
        Math.max(
          memory.backoffs.get(target)?.untilMs ?? -Infinity,
          (target === 'ledger' ? own.ledger : own.skyhook).notBeforeMs(),
        )
      const turn = planTurn(memory, snapshot, counts, { nowMs, wallMs: clock.wallMs(), notBeforeMs })
      return 'request' in turn ? await attempt(turn.request, skyhook) : turn.requeueAtMs
    },
  }
}

/** The request that is due, the ledger first; without one, when the next may be. */
function planTurn(
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
function noteSpecChange(memory: Memory, skyhook: Skyhook, applied: string, nowMs: number): void {
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

function newProblems(memory: Memory, skyhook: Skyhook, counts: Counts): readonly SkyhookEvent[] {
  const isTakenOver =
    memory.problems === undefined && statusOf(skyhook)?.observedGeneration === skyhook.metadata.generation
  const { events, problems } = problemEvents(counts, memory.problems ?? new Set())
  memory.problems = problems
  return isTakenOver ? [] : events // the census before reported them
}

function statusDueAtMs(memory: Memory, before: SkyhookStatus | undefined, next: SkyhookStatus, agents: number): number {
  if (isDeepStrictEqual(next, before)) return Infinity
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
