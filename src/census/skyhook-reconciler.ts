/** One Skyhook at the census: counted again and again, written when something changed and it is time to. */
import { isDeepStrictEqual } from 'node:util'
import { readLedger, writeLedger, type Ledger } from '../lease/ledger.ts'
import { exponentialBackoff } from '../kube/retry.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { countSelectedNodes, type Counts } from './count.ts'
import { planFinalizer } from './finalizer.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import { dampedCountDueAtMs, type DampedCount } from './damped-count.ts'
import type { CensusNode } from './node-facts.ts'
import { createOwnWrites } from './own-writes.ts'
import { writeAtMs } from './write-throttle.ts'
import type { Agents } from './agent-liveness.ts'
import { conditionOf, type SkyhookStatus } from './skyhook-status.ts'
import { metadataPatchFor, writeStatus, patchSkyhookMetadata, type MetadataPatch } from './skyhook-writer.ts'
import { isUrgent, nextStatus } from './status.ts'
import {
  problemEvents,
  skippedNodeEvents,
  transitionEvents,
  type SkyhookEvent,
  type ReportedProblems,
} from './events.ts'

/** What is seen at one moment, all of it from lists and watches that can be believed. */
export type CensusSnapshot = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly agents: Agents
  readonly skyhook: Skyhook
  readonly ledger: Lease | undefined
}

export type SkyhookReconcilerOptions = {
  readonly leases: Leases
  /** The snapshot of now; undefined = something of it cannot be believed, or the Skyhook is gone. */
  readonly observe: () => CensusSnapshot | undefined
  readonly report: (skyhook: Skyhook, event: SkyhookEvent) => void
  /** A write failed; it is tried again later. */
  readonly onFailed: (error: unknown) => void
  /** Monotonic. */
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly signal: AbortSignal
}

export type SkyhookReconciler = {
  /**
   * Counts, and writes at most one thing: what was counted before a write may be old after it. Resolves with the moment
   * of the next turn that needs no news. Never throws for what a server answers.
   */
  reconcile(): Promise<number>
  /** The watch showed the Skyhook, or its ledger, in this version. */
  observed(what: 'skyhook' | 'ledger', resourceVersion: string): void
}

type WriteTarget = 'ledger' | 'metadata' | 'status'

/**
 * Nodes see an edit within this time and say so; until then a complete node may only be one that has not looked yet
 * (A→B→A).
 */
const specPropagationMs = 1_000
/** After a conflict the watch brings what is new; should it have been our own write, nothing would come. */
const conflictRetryMs = 500

const backoff = exponentialBackoff()

export function createSkyhookReconciler(options: SkyhookReconcilerOptions): SkyhookReconciler {
  const { leases, nowMs, wallMs, signal } = options
  const { transport } = leases
  const own = { skyhook: createOwnWrites<Skyhook>(), ledger: createOwnWrites<Lease>() }
  let lastCounted: { readonly generation: number; readonly applied: string } | undefined
  const backoffs = new Map<WriteTarget, { readonly failures: number; readonly untilMs: number }>()
  let specPropagatedAtMs = -Infinity
  let deletionObservedAtMs: number | undefined
  let matched: DampedCount | undefined
  let statusWrittenMs: number | undefined
  let ledgerWrittenMs: number | undefined
  let problems: ReportedProblems | undefined

  const trackSpecChange = (skyhook: Skyhook, counts: Counts, now: number): void => {
    const { generation = 0, deletionTimestamp } = skyhook.metadata
    if (lastCounted?.generation !== generation || lastCounted.applied !== counts.applied) {
      const isNext = lastCounted !== undefined && generation === lastCounted.generation + 1
      const changesWork =
        lastCounted === undefined ? !isReadyFor(skyhook, generation) : !isNext || lastCounted.applied !== counts.applied
      if (changesWork) specPropagatedAtMs = now + specPropagationMs
      lastCounted = { generation, applied: counts.applied }
    }
    if (deletionTimestamp !== undefined) deletionObservedAtMs ??= now
  }

  /**
   * Carries out one write; how it ends decides when to look again. What one write cannot do keeps the others back only
   * for a turn.
   */
  const attempt = async (target: WriteTarget, work: () => Promise<'written' | 'conflict'>): Promise<number> => {
    try {
      const outcome = await work()
      backoffs.delete(target)
      return outcome === 'conflict' ? nowMs() + conflictRetryMs : nowMs()
    } catch (error) {
      if (signal.aborted) return Infinity
      options.onFailed(error)
      const failures = (backoffs.get(target)?.failures ?? 0) + 1
      backoffs.set(target, { failures, untilMs: nowMs() + backoff(failures - 1) })
      return nowMs()
    }
  }
  const backoffUntilMs = (target: WriteTarget): number => backoffs.get(target)?.untilMs ?? -Infinity

  const putLedger = async (
    found: Lease | undefined,
    skyhook: Skyhook,
    plan: LedgerPlan,
  ): Promise<'written' | 'conflict'> => {
    const recordWritten = own.ledger.begin()
    const answer = await writeLedger(leases, { skyhook: skyhook.metadata, found }, plan.ledger, signal)
    if (answer.outcome === 'conflict') return 'conflict'
    recordWritten(answer.lease)
    matched = plan.matched
    ledgerWrittenMs = nowMs()
    return 'written'
  }

  const patchMetadata = async (skyhook: Skyhook, metadataPatch: MetadataPatch): Promise<'written' | 'conflict'> => {
    const recordWritten = own.skyhook.begin()
    const answer = await patchSkyhookMetadata(transport, skyhook, metadataPatch, signal)
    if (answer.outcome === 'written') recordWritten(answer.skyhook)
    return answer.outcome
  }

  const putStatus = async (skyhook: Skyhook, status: SkyhookStatus): Promise<'written' | 'conflict'> => {
    const recordWritten = own.skyhook.begin()
    const answer = await writeStatus(transport, skyhook, status, signal)
    if (answer.outcome === 'conflict') return 'conflict'
    recordWritten(answer.skyhook)
    statusWrittenMs = nowMs()
    for (const event of transitionEvents(skyhook.status as SkyhookStatus | undefined, status))
      options.report(skyhook, event)
    return 'written'
  }

  const reportProblems = (skyhook: Skyhook, counts: Counts): void => {
    const isKnownRollout =
      (skyhook.status as SkyhookStatus | undefined)?.observedGeneration === skyhook.metadata.generation
    const reported = problemEvents(counts, problems ?? new Set())
    const isTakenOver = problems === undefined && isKnownRollout // the census before told them
    problems = reported.problems
    if (!isTakenOver) for (const event of reported.events) options.report(skyhook, event)
  }

  return {
    observed: (what, resourceVersion) => own[what].observed(resourceVersion),

    async reconcile() {
      const snapshot = options.observe()
      if (snapshot === undefined) return Infinity
      const { nodes, agents } = snapshot
      const now = nowMs()
      const skyhook = own.skyhook.latest() ?? snapshot.skyhook
      const { deletionTimestamp, finalizers = [] } = skyhook.metadata
      if (deletionTimestamp !== undefined && finalizers.length === 0) return Infinity // gone; the watch is about to say so
      const lease = own.ledger.latest() ?? snapshot.ledger
      const counts = countSelectedNodes(
        { metadata: skyhook.metadata, spec: skyhook.spec, stale: false },
        nodes.values(),
        agents,
      )
      trackSpecChange(skyhook, counts, now)
      reportProblems(skyhook, counts)

      const currentLedger = ledgerIn(lease)
      const times = { lastWriteMs: ledgerWrittenMs, nowMs: now, wallMs: wallMs() }
      const ledger = planLedger({ skyhook, counts, agents: agents.ready, currentLedger, matched, ...times })
      if (currentLedger?.compartments['']?.matched === ledger.matched.published) matched = ledger.matched // else when it is written
      const ledgerAtMs = Math.max(ledger.writeAtMs, backoffUntilMs('ledger'))
      if (ledgerAtMs <= now) return await attempt('ledger', async () => await putLedger(lease, skyhook, ledger))

      const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionObservedAtMs, nowMs: now })
      const metadataPatch = metadataPatchFor(skyhook, finalizer)
      const metadataPatchAtMs = metadataPatch === undefined ? Infinity : backoffUntilMs('metadata')
      if (metadataPatch !== undefined && metadataPatchAtMs <= now) {
        for (const event of skippedNodeEvents(finalizer)) options.report(skyhook, event)
        return await attempt('metadata', async () => await patchMetadata(skyhook, metadataPatch))
      }

      const isSpecPropagating = now < specPropagatedAtMs
      const status = nextStatus({ skyhook, counts, finalizer, isSpecPropagating, nowMs: wallMs() })
      const statusAtMs = Math.max(statusDueMs(skyhook, status, agents.ready ?? nodes.size), backoffUntilMs('status'))
      if (statusAtMs <= now) return await attempt('status', async () => await putStatus(skyhook, status))

      const deletionAtMs = finalizer.action === 'wait' ? finalizer.recheckAtMs : Infinity
      const propagationEndAtMs = isSpecPropagating ? specPropagatedAtMs : Infinity
      return Math.min(
        ledgerAtMs,
        dampedCountDueAtMs(ledger.matched),
        metadataPatchAtMs,
        statusAtMs,
        deletionAtMs,
        propagationEndAtMs,
      )
    },
  }

  function statusDueMs(skyhook: Skyhook, status: SkyhookStatus, agents: number): number {
    const before = skyhook.status as SkyhookStatus | undefined
    if (isDeepStrictEqual(status, before)) return Infinity
    return writeAtMs({ lastWriteMs: statusWrittenMs, agents, isUrgent: isUrgent(before, status) })
  }
}

/** The last census waited long enough before it said so. */
function isReadyFor(skyhook: Skyhook, generation: number): boolean {
  const ready = conditionOf(skyhook.status as SkyhookStatus | undefined, 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === generation
}

function ledgerIn(lease: Lease | undefined): Ledger | undefined {
  const read = lease === undefined ? undefined : readLedger(lease)
  return read?.outcome === 'read' ? read.ledger : undefined
}
