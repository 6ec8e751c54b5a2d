/** One Skyhook at the census: counted again and again, written when something changed and it is time to. */
import { isDeepStrictEqual } from 'node:util'
import { readLedger, writeLedger, type Ledger } from '../lease/ledger.ts'
import { exponentialBackoff } from '../kube/retry.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { countNodes, type Counts } from './count.ts'
import { planFinalizer } from './finalizer.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import { matchedAgainMs, type Matched } from './damped-count.ts'
import type { CensusNode } from './node-facts.ts'
import { createOwnWrites } from './own-writes.ts'
import { writeAtMs } from './write-throttle.ts'
import type { Agents } from './agent-liveness.ts'
import { conditionOf, type SkyhookStatus } from './skyhook-status.ts'
import { upkeepOf, writeStatus, writeUpkeep, type Upkeep } from './skyhook-writer.ts'
import { isUrgent, nextStatus } from './status.ts'
import { problemsOf, skippedNodes, turnsOf, type Told, type ToldProblems } from './events.ts'

/** What is seen at one moment, all of it from lists and watches that can be believed. */
export type Sight = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly agents: Agents
  readonly skyhook: Skyhook
  readonly ledger: Lease | undefined
}

export type DeskOptions = {
  readonly leases: Leases
  /** The sight of now; undefined = something of it cannot be believed, or the Skyhook is gone. */
  readonly look: () => Sight | undefined
  readonly tell: (skyhook: Skyhook, told: Told) => void
  /** A write failed; it is tried again later. */
  readonly onFailed: (error: unknown) => void
  /** Monotonic. */
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly signal: AbortSignal
}

export type Desk = {
  /**
   * Counts, and writes at most one thing: what was counted before a write may be old after it. Resolves with the moment of the next turn
   * that needs no news. Never throws for what a server answers.
   */
  turn(): Promise<number>
  /** The watch showed the Skyhook, or its ledger, in this version. */
  seen(what: 'skyhook' | 'ledger', resourceVersion: string): void
}

type Write = 'ledger' | 'metadata' | 'status'

/** Nodes see an edit within this time and say so; until then a complete node may only be one that has not looked yet (A→B→A). */
const FRESH_MS = 1_000
/** After a conflict the watch brings what is new; should it have been our own write, nothing would come. */
const AFTER_CONFLICT_MS = 500

const backoff = exponentialBackoff()

export function createDesk(options: DeskOptions): Desk {
  const { leases, nowMs, wallMs, signal } = options
  const { transport } = leases
  const own = { skyhook: createOwnWrites<Skyhook>(), ledger: createOwnWrites<Lease>() }
  let counted: { readonly generation: number; readonly applied: string } | undefined
  const held = new Map<Write, { readonly failures: number; readonly untilMs: number }>()
  let freshUntilMs = -Infinity
  let deletionSeenMs: number | undefined
  let matched: Matched | undefined
  let statusWrittenMs: number | undefined
  let ledgerWrittenMs: number | undefined
  let problems: ToldProblems | undefined

  const noteSpec = (skyhook: Skyhook, counts: Counts, now: number): void => {
    const { generation = 0, deletionTimestamp } = skyhook.metadata
    if (counted?.generation !== generation || counted.applied !== counts.applied) {
      const isNext = counted !== undefined && generation === counted.generation + 1
      const changesWork = counted === undefined ? !isReadyFor(skyhook, generation) : !isNext || counted.applied !== counts.applied
      if (changesWork) freshUntilMs = now + FRESH_MS
      counted = { generation, applied: counts.applied }
    }
    if (deletionTimestamp !== undefined) deletionSeenMs ??= now
  }

  /** Carries out one write; how it ends decides when to look again. What one write cannot do keeps the others back only for a turn. */
  const attempt = async (write: Write, work: () => Promise<'written' | 'conflict'>): Promise<number> => {
    try {
      const outcome = await work()
      held.delete(write)
      return outcome === 'conflict' ? nowMs() + AFTER_CONFLICT_MS : nowMs()
    } catch (error) {
      if (signal.aborted) return Infinity
      options.onFailed(error)
      const failures = (held.get(write)?.failures ?? 0) + 1
      held.set(write, { failures, untilMs: nowMs() + backoff(failures - 1) })
      return nowMs()
    }
  }
  const heldUntilMs = (write: Write): number => held.get(write)?.untilMs ?? -Infinity

  const putLedger = async (found: Lease | undefined, skyhook: Skyhook, plan: LedgerPlan): Promise<'written' | 'conflict'> => {
    const wrote = own.ledger.begin()
    const answer = await writeLedger(leases, { skyhook: skyhook.metadata, found }, plan.ledger, signal)
    if (answer.outcome === 'conflict') return 'conflict'
    wrote(answer.lease)
    matched = plan.matched
    ledgerWrittenMs = nowMs()
    return 'written'
  }

  const patchMetadata = async (skyhook: Skyhook, upkeep: Upkeep): Promise<'written' | 'conflict'> => {
    const wrote = own.skyhook.begin()
    const answer = await writeUpkeep(transport, skyhook, upkeep, signal)
    if (answer.outcome === 'written') wrote(answer.skyhook)
    return answer.outcome
  }

  const putStatus = async (skyhook: Skyhook, status: SkyhookStatus): Promise<'written' | 'conflict'> => {
    const wrote = own.skyhook.begin()
    const answer = await writeStatus(transport, skyhook, status, signal)
    if (answer.outcome === 'conflict') return 'conflict'
    wrote(answer.skyhook)
    statusWrittenMs = nowMs()
    for (const told of turnsOf(skyhook.status as SkyhookStatus | undefined, status)) options.tell(skyhook, told)
    return 'written'
  }

  const tellProblems = (skyhook: Skyhook, counts: Counts): void => {
    const isKnownRollout = (skyhook.status as SkyhookStatus | undefined)?.observedGeneration === skyhook.metadata.generation
    const news = problemsOf(counts, problems ?? new Set())
    const isTakenOver = problems === undefined && isKnownRollout // the census before told them
    problems = news.problems
    if (!isTakenOver) for (const told of news.told) options.tell(skyhook, told)
  }

  return {
    seen: (what, resourceVersion) => own[what].seen(resourceVersion),

    async turn() {
      const sight = options.look()
      if (sight === undefined) return Infinity
      const { nodes, agents } = sight
      const now = nowMs()
      const skyhook = own.skyhook.latest() ?? sight.skyhook
      const { deletionTimestamp, finalizers = [] } = skyhook.metadata
      if (deletionTimestamp !== undefined && finalizers.length === 0) return Infinity // gone; the watch is about to say so
      const lease = own.ledger.latest() ?? sight.ledger
      const counts = countNodes({ metadata: skyhook.metadata, spec: skyhook.spec, stale: false }, nodes.values(), agents)
      noteSpec(skyhook, counts, now)
      tellProblems(skyhook, counts)

      const shown = ledgerIn(lease)
      const times = { lastWriteMs: ledgerWrittenMs, nowMs: now, wallMs: wallMs() }
      const ledger = planLedger({ skyhook, counts, agents: agents.ready, shown, matched, ...times })
      if (shown?.compartments['']?.matched === ledger.matched.published) matched = ledger.matched // else when it is written
      const ledgerAtMs = Math.max(ledger.writeAtMs, heldUntilMs('ledger'))
      if (ledgerAtMs <= now) return await attempt('ledger', async () => await putLedger(lease, skyhook, ledger))

      const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionSeenMs, nowMs: now })
      const upkeep = upkeepOf(skyhook, finalizer)
      const upkeepAtMs = upkeep === undefined ? Infinity : heldUntilMs('metadata')
      if (upkeep !== undefined && upkeepAtMs <= now) {
        for (const told of skippedNodes(finalizer)) options.tell(skyhook, told)
        return await attempt('metadata', async () => await patchMetadata(skyhook, upkeep))
      }

      const isFresh = now < freshUntilMs
      const status = nextStatus({ skyhook, counts, finalizer, isFresh, nowMs: wallMs() })
      const statusAtMs = Math.max(statusDueMs(skyhook, status, agents.ready ?? nodes.size), heldUntilMs('status'))
      if (statusAtMs <= now) return await attempt('status', async () => await putStatus(skyhook, status))

      const deletionAtMs = finalizer.do === 'wait' ? finalizer.againAtMs : Infinity
      const freshAtMs = isFresh ? freshUntilMs : Infinity
      return Math.min(ledgerAtMs, matchedAgainMs(ledger.matched), upkeepAtMs, statusAtMs, deletionAtMs, freshAtMs)
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
