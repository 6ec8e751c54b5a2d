/** One Skyhook at the census: counted again and again, written when something changed and a write is due. */
import { requestBackoff } from '../../kube/retry.ts'
import { writeLedger } from '../../lease/ledger.ts'
import { skyhookScope } from '../../lease/names.ts'
import { type Leases, listScope, listSlotsOf, type ScopeListing } from '../../lease/slot-reads.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import { type Budget, budgetOf } from '../../schemas/budget.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { ignoresNodeWright } from '../../schemas/nodewright.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { countSelectedNodes } from '../model/count.ts'
import { type SkyhookEvent, transitionEvents } from '../write/events.ts'
import { lookedAt } from '../model/finalizer.ts'
import { skyhookSeries } from '../status/fleet-series.ts'
import { type CensusSnapshot, initialState, type Request, reconcile } from './reconcile.ts'
import { statusOf } from '../model/skyhook-status.ts'
import { patchSkyhookMetadata, writeStatus } from '../write/skyhook-writer.ts'

export type SkyhookReconcilerOptions = {
  readonly leases: Leases
  readonly random: Random
  /** The current snapshot; undefined = a part of it cannot be trusted, or the Skyhook is gone. */
  readonly observe: () => CensusSnapshot | undefined
  /** Of Skyhooks that name no budget. */
  readonly defaultBudget: Budget
  /** The API server serves the group of NodeWright; absent: it does not. */
  readonly isNodeWrightServed?: boolean
  /** The API server's answers show what a watch should have shown: the collection must be listed. */
  readonly relist: (what: 'skyhook' | 'ledger') => void
  readonly report: (skyhook: Skyhook, event: SkyhookEvent) => void
  /** The counts, as series. */
  readonly onCounted: (skyhook: string, series: FleetSeries) => void
  /** A write failed. It is retried later, or is not this version's to make. */
  readonly onFailed: (error: unknown) => void
  readonly signal: AbortSignal
}

export type SkyhookReconciler = {
  /**
   * Counts, and writes at most one object: after a write the counts may be old. Resolves with the moment (monotonic ms)
   * of the next turn if nothing changes. Never throws for an answer of the server.
   */
  reconcile(): Promise<number>
  /** The watch, or a LIST of all, showed the Skyhook or its ledger. True: this includes our last write to it. */
  observed(what: 'skyhook' | 'ledger', isListed?: boolean): boolean
}

const writtenBy: Partial<Record<Request['target'], 'skyhook' | 'ledger'>> = {
  ledger: 'ledger',
  metadata: 'skyhook',
  status: 'skyhook',
}

export function createSkyhookReconciler(options: SkyhookReconcilerOptions): SkyhookReconciler {
  const { leases, random, signal } = options
  const { transport, clock } = leases
  const own = {
    skyhook: createOwnWrites(clock, () => options.relist('skyhook')),
    ledger: createOwnWrites(clock, () => options.relist('ledger')),
  }
  const backoffs = new Map<Request['target'], { readonly failures: number; readonly untilMs: number }>()
  let state = initialState
  /** Since the last turn. */
  let listing: ScopeListing | undefined
  let areSkyhooksListed = false
  let reportedLedger: string | undefined
  const report = (skyhook: Skyhook, events: readonly SkyhookEvent[]): void => {
    for (const event of events) options.report(skyhook, event)
  }

  const carryOut = async (request: Request, skyhook: Skyhook): Promise<void> => {
    switch (request.target) {
      case 'slots': {
        listing = await listScope(leases, skyhookScope(skyhook.metadata), signal)
        return
      }
      case 'holders': {
        const slots = await listSlotsOf(leases, skyhook.metadata.name, signal)
        state = { ...state, holderLook: lookedAt(state.holderLook, slots, clock.monotonicMs()) }
        return
      }
      case 'ledger': {
        const ownWrite = own.ledger.begin()
        const target = { skyhook: skyhook.metadata, found: request.found }
        const answer = await writeLedger(leases, target, request.plan.ledger, signal)
        if (answer.outcome === 'conflict') return ownWrite.conflicted()
        ownWrite.written()
        state = { ...state, matched: request.plan.matched, ledgerWrittenAtMs: clock.monotonicMs() }
        return
      }
      case 'metadata': {
        const ownWrite = own.skyhook.begin()
        report(skyhook, request.events)
        const result = await patchSkyhookMetadata(transport, skyhook, request.patch, signal)
        return result === 'conflict' ? ownWrite.conflicted() : ownWrite.written()
      }
      case 'status': {
        const ownWrite = own.skyhook.begin()
        const result = await writeStatus(transport, skyhook, request.status, signal)
        if (result === 'conflict') return ownWrite.conflicted()
        ownWrite.written()
        state = { ...state, statusWrittenAtMs: clock.monotonicMs() }
        report(skyhook, transitionEvents(statusOf(skyhook), request.status))
      }
    }
  }

  /** The result of a request decides when to look again. One that fails holds the others back for one turn only. */
  const attempt = async (request: Request, skyhook: Skyhook): Promise<number> => {
    const { target } = request
    try {
      await carryOut(request, skyhook)
      backoffs.delete(target)
      return clock.monotonicMs()
    } catch (error) {
      if (signal.aborted) return Infinity
      options.onFailed(error)
      const failures = (backoffs.get(target)?.failures ?? 0) + 1
      const nowMs = clock.monotonicMs()
      backoffs.set(target, { failures, untilMs: nowMs + backoffMs(failures, requestBackoff, random.number()) })
      return nowMs
    }
  }

  const notBeforeMs = (target: Request['target']): number => {
    const what = writtenBy[target]
    return Math.max(
      backoffs.get(target)?.untilMs ?? -Infinity,
      what === undefined ? -Infinity : own[what].notBeforeMs(),
    )
  }

  return {
    observed(what, isListed = false) {
      if (what === 'skyhook') areSkyhooksListed ||= isListed
      return own[what].observed()
    },

    async reconcile() {
      const observed = options.observe()
      if (observed === undefined) return Infinity
      const nowMs = clock.monotonicMs()
      const unseenUntilMs = Math.max(own.skyhook.unseenUntilMs(), own.ledger.unseenUntilMs())
      if (nowMs < unseenUntilMs) return unseenUntilMs
      const { skyhook, nodes, agents, policy } = observed
      const { metadata, spec } = skyhook
      if (metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0) return Infinity // gone
      const budget = budgetOf(spec, options.defaultBudget)
      const counts = countSelectedNodes({ metadata, spec, budget, stale: false, policy }, nodes.values(), agents)
      const { next, ledger, newerLedger, ...reconciled } = reconcile(state, {
        ...observed,
        counts,
        nodeCount: nodes.size,
        isNodeWrightServed: options.isNodeWrightServed === true && !ignoresNodeWright(metadata.annotations),
        listing,
        areSkyhooksListed,
        nowMs,
        wallMs: clock.wallMs(),
        notBeforeMs,
      })
      state = reconciled.state
      listing = undefined
      areSkyhooksListed = false
      report(skyhook, reconciled.events)
      options.onCounted(metadata.name, skyhookSeries({ skyhook, counts, ledger, nodes }))
      if (newerLedger !== undefined && newerLedger !== reportedLedger) options.onFailed(new Error(newerLedger))
      reportedLedger = newerLedger
      if (reconciled.needsList) options.relist('skyhook')
      return next.target === 'nothing' ? next.untilMs : await attempt(next, skyhook)
    },
  }
}

/**
 * Our writes to an object that the watch has not shown yet. A write succeeds only over the last version that was
 * observed. What the watch shows after the start of a write is that write or a later one. All times are monotonic ms.
 */
export type OwnWrites = {
  /** Call it before a write. The watch may be faster than the response. */
  begin(): OwnWrite
  /**
   * The watch showed the object, or a LIST was complete, also a LIST of an etcd that was restored without our write.
   * True if our last write was not seen before.
   */
  observed(): boolean
  /** After a write that the watch has not shown. Until then the watch shows an old version. */
  unseenUntilMs(): number
  /** After conflicts, the earliest time of the next write. */
  notBeforeMs(): number
}

/** How a write ended; neither is called for one that failed. */
type OwnWrite = {
  written(): void
  /** Somebody else wrote it, or the watch is late. */
  conflicted(): void
}

/** A watch that is later than this is late. The next write over what it shows will be a conflict, which is harmless. */
const maxUnseenMs = 1_000
/** After a conflict the watch shows the new version. If it does not, the pauses grow, and a LIST is asked for. */
const conflictBackoff: Backoff = { initialMs: 500, maxMs: 30_000 }

/** The first may be a write that the watch is about to show. */
const minConflictsOfOldWatch = 2

/** `onOldWatch`: writes conflict again and again, and the watch shows nothing new. */
export function createOwnWrites(clock: Pick<Clock, 'monotonicMs'>, onOldWatch: () => void): OwnWrites {
  let observations = 0
  let conflicts = 0
  let unseenUntilMs = -Infinity
  let notBeforeMs = -Infinity

  return {
    begin() {
      const before = observations
      return {
        written() {
          conflicts = 0
          if (observations === before) unseenUntilMs = clock.monotonicMs() + maxUnseenMs
        },
        conflicted() {
          conflicts++
          if (observations !== before) return
          notBeforeMs = clock.monotonicMs() + backoffMs(conflicts, conflictBackoff)
          if (conflicts >= minConflictsOfOldWatch) onOldWatch()
        },
      }
    },
    observed() {
      const wasUnseen = unseenUntilMs !== -Infinity
      observations++
      unseenUntilMs = -Infinity
      notBeforeMs = -Infinity
      return wasUnseen
    },
    unseenUntilMs: () => unseenUntilMs,
    notBeforeMs: () => notBeforeMs,
  }
}
