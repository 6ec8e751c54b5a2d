/** One Skyhook at the census: counted again and again, written when something changed and it is time to. */
import { isDeepStrictEqual } from 'node:util'
import { writeLedger, readLedger, type Ledger } from '../lease/ledger.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { countNodes, type Counts } from './count.ts'
import { planFinalizer, type FinalizerPlan } from './deletion.ts'
import { planLedger, type LedgerPlan } from './ledger-plan.ts'
import { matchedAgainMs, type Matched } from './matched.ts'
import type { CensusNode } from './node-facts.ts'
import { createOwnWrites } from './own-writes.ts'
import { writeAtMs } from './pacing.ts'
import type { Agents } from './silence.ts'
import { conditionOf, type SkyhookStatus } from './skyhook-status.ts'
import { upkeepOf, writeStatus, writeUpkeep, type SkyhookWritten } from './skyhook-writer.ts'
import { isUrgent, nextStatus } from './status.ts'
import { problemsOf, skippedNodes, turnsOf, type Told, type ToldProblems } from './telling.ts'

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
  /** Monotonic. */
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly signal: AbortSignal
}

export type Desk = {
  /** Counts and writes what is due. Resolves with the moment of the next turn that needs no news; throws what a write threw. */
  turn(): Promise<number>
  /** The watch showed the Skyhook, or its ledger, in this version. */
  seen(what: 'skyhook' | 'ledger', resourceVersion: string): void
}

/** Nodes see an edit within this time and say so; until then a complete node may only be one that has not looked yet (A→B→A). */
const FRESH_MS = 1_000
/** After a conflict the watch brings what is new; should it have been our own write, nothing would come. */
const AFTER_CONFLICT_MS = 500

export function createDesk(options: DeskOptions): Desk {
  const { leases, nowMs, wallMs, signal } = options
  const { transport } = leases
  const own = { skyhook: createOwnWrites<Skyhook>(), ledger: createOwnWrites<Lease>() }
  let counted: { readonly generation: number; readonly applied: string } | undefined
  let freshUntilMs = -Infinity
  let deletionSeenMs: number | undefined
  let matched: Matched | undefined
  let statusWrittenMs: number | undefined
  let ledgerWrittenMs: number | undefined
  let problems: ToldProblems | undefined

  const noteSpec = (skyhook: Skyhook, counts: Counts, now: number): void => {
    const { generation = 0, deletionTimestamp } = skyhook.metadata
    if (counted?.generation !== generation || counted.applied !== counts.applied) {
      const changesWork = counted === undefined ? !isReadyFor(skyhook, generation) : counted.applied !== counts.applied
      if (changesWork) freshUntilMs = now + FRESH_MS
      counted = { generation, applied: counts.applied }
    }
    if (deletionTimestamp !== undefined) deletionSeenMs ??= now
  }

  const keepLedger = async (found: Lease | undefined, skyhook: Skyhook, plan: LedgerPlan, now: number): Promise<boolean> => {
    const isShown = plan.matched.published === ledgerIn(found)?.compartments['']?.matched
    if (isShown) matched = plan.matched // what could not be written yet must not begin its wait anew
    if (plan.writeAtMs > now) return true
    const answer = await writeLedger(leases, { skyhook: skyhook.metadata, found }, plan.ledger, signal)
    if (answer.outcome === 'conflict') return false
    own.ledger.wrote(answer.lease)
    matched = plan.matched
    ledgerWrittenMs = now
    return true
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
      let skyhook = own.skyhook.latest() ?? sight.skyhook
      const foundLedger = own.ledger.latest() ?? sight.ledger
      const counts = countNodes({ metadata: skyhook.metadata, spec: skyhook.spec, stale: false }, nodes.values(), agents)
      noteSpec(skyhook, counts, now)

      const shown = ledgerIn(foundLedger)
      const ledger = planLedger({
        skyhook,
        counts,
        agents: agents.ready,
        shown,
        matched,
        lastWriteMs: ledgerWrittenMs,
        nowMs: now,
        wallMs: wallMs(),
      })
      const ledgerKept = await keepLedger(foundLedger, skyhook, ledger, now).catch((error: unknown) => ({ error }))
      if (ledgerKept === false) return now + AFTER_CONFLICT_MS

      const finalizer = planFinalizer({ skyhook, counts, isDead: agents.isDead, deletionSeenMs, nowMs: now })
      for (const told of skippedNodes(finalizer)) options.tell(skyhook, told)
      const upkeep = upkeepOf(skyhook, finalizer)
      if (upkeep !== undefined) {
        const answer = await writeUpkeep(transport, skyhook, upkeep, signal)
        if (answer.outcome === 'conflict') return now + AFTER_CONFLICT_MS
        if (finalizer.do === 'remove' && skyhook.metadata.deletionTimestamp !== undefined) return Infinity // it is gone
        skyhook = keep(answer)
      }

      const isFresh = now < freshUntilMs
      const status = nextStatus({ skyhook, counts, finalizer, isFresh, nowMs: wallMs() })
      let statusAtMs = Infinity
      if (!isDeepStrictEqual(status, skyhook.status)) {
        const before = skyhook.status as SkyhookStatus | undefined
        statusAtMs = writeAtMs({ lastWriteMs: statusWrittenMs, agents: agents.ready ?? nodes.size, isUrgent: isUrgent(before, status) })
        if (statusAtMs <= now) {
          const answer = await writeStatus(transport, skyhook, status, signal)
          if (answer.outcome === 'conflict') return now + AFTER_CONFLICT_MS
          statusWrittenMs = now
          statusAtMs = Infinity
          for (const told of turnsOf(before, status)) options.tell(skyhook, told)
          tellProblems(skyhook, counts)
          keep(answer)
        }
      } else tellProblems(skyhook, counts)

      if (ledgerKept !== true) throw ledgerKept.error // only now: what the one write cannot do must not keep the other back
      return nextTurnMs({ ledger, finalizer, statusAtMs, freshUntilMs: isFresh ? freshUntilMs : Infinity })
    },
  }

  function keep(answer: Extract<SkyhookWritten, { outcome: 'written' }>): Skyhook {
    own.skyhook.wrote(answer.skyhook)
    return answer.skyhook
  }
}

type Due = { readonly ledger: LedgerPlan; readonly finalizer: FinalizerPlan; readonly statusAtMs: number; readonly freshUntilMs: number }

function nextTurnMs({ ledger, finalizer, statusAtMs, freshUntilMs }: Due): number {
  const deletionAtMs = finalizer.do === 'wait' ? finalizer.againAtMs : Infinity
  const ledgerAtMs = ledger.writeAtMs === -Infinity ? Infinity : ledger.writeAtMs
  return Math.min(ledgerAtMs, matchedAgainMs(ledger.matched), deletionAtMs, statusAtMs, freshUntilMs)
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
