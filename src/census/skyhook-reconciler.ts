/** One Skyhook at the census: counted again and again, written when something changed and a write is due. */
import { getIfExists } from '../kube/get.ts'
import { requestBackoff } from '../kube/retry.ts'
import { skyhookScope } from '../lease/names.ts'
import { writeLedger } from '../lease/ledger.ts'
import { type Leases, listScope, listSlotsOf } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { backoffMs } from '../schemas/backoff.ts'
import { type Budget, budgetOf } from '../schemas/budget.ts'
import type { FleetSeries } from '../schemas/catalogue/fleet-metrics.ts'
import type { Random } from '../schemas/clock.ts'
import { ignoresNodeWright } from '../schemas/nodewright.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { afterRead } from './ahead-ledger.ts'
import { countSelectedNodes } from './count.ts'
import { transitionEvents, type SkyhookEvent } from './events.ts'
import { skyhookSeries } from './fleet-series.ts'
import { lookedAt } from './finalizer.ts'
import { createOwnWrites } from './own-writes.ts'
import { statusOf } from './skyhook-status.ts'
import { patchSkyhookMetadata, writeStatus } from './skyhook-writer.ts'
import {
  ledgerIn,
  newProblems,
  noteSpecChange,
  planTurn,
  type CensusSnapshot,
  type Memory,
  type Request,
} from './turn.ts'

export type SkyhookReconcilerOptions = {
  readonly leases: Leases
  readonly random: Random
  /** The current snapshot; undefined = something of it cannot be believed, or the Skyhook is gone. */
  readonly observe: () => Omit<CensusSnapshot, 'isNodeWrightServed'> | undefined
  /** Of Skyhooks that name no budget. */
  readonly defaultBudget: Budget
  /** The API server serves its group; absent: it does not. */
  readonly isNodeWrightServed?: boolean
  /** The API server answers what a watch should have shown: the collection is to be listed. */
  readonly relist: (what: 'skyhook' | 'ledger') => void
  readonly report: (skyhook: Skyhook, event: SkyhookEvent) => void
  /** What was counted, as series. */
  readonly onCounted: (skyhook: string, series: FleetSeries) => void
  /** A write failed, and is tried again later, or is not this version's to make. */
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

export function createSkyhookReconciler(options: SkyhookReconcilerOptions): SkyhookReconciler {
  const { leases, random, signal } = options
  const { transport, clock } = leases
  const own = {
    skyhook: createOwnWrites<Skyhook>(clock, () => options.relist('skyhook')),
    ledger: createOwnWrites<Lease>(clock, () => options.relist('ledger')),
  }
  const memory: Memory = {
    specPropagatedAtMs: -Infinity,
    editPropagatedAtMs: -Infinity,
    backoffs: new Map(),
    idleSinceMs: new Map(),
    looks: new Map(),
  }
  const report = (skyhook: Skyhook, events: readonly SkyhookEvent[]): void => {
    for (const event of events) options.report(skyhook, event)
  }

  const carryOut = async (request: Request, skyhook: Skyhook): Promise<void> => {
    switch (request.target) {
      case 'skyhook': {
        const { ahead, ledger } = request
        const path = `${skyhooksPath}/${skyhook.metadata.name}`
        const found = await getIfExists<Skyhook>(transport, path, { signal })
        memory.ahead = afterRead(ahead, ledger, found, clock.monotonicMs())
        if (!memory.ahead.isLost) options.relist('skyhook')
        return
      }
      case 'slots': {
        memory.listing = await listScope(leases, skyhookScope(skyhook.metadata), signal)
        return
      }
      case 'holders': {
        const slots = await listSlotsOf(leases, skyhook.metadata.name, signal)
        memory.holderLook = lookedAt(memory.holderLook, slots, clock.monotonicMs())
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
      const isNodeWrightServed = options.isNodeWrightServed === true && !ignoresNodeWright(skyhook.metadata.annotations)
      const ledgerSeen = own.ledger.latest() ?? observed.ledger
      const snapshot = { ...observed, skyhook, ledger: ledgerSeen, isNodeWrightServed }
      const { metadata, spec } = skyhook
      if (metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0) return Infinity // gone
      const counts = countSelectedNodes(
        { metadata, spec, budget: budgetOf(spec, options.defaultBudget), stale: false, policy: observed.policy },
        observed.nodes.values(),
        observed.agents,
      )
      const nowMs = clock.monotonicMs()
      noteSpecChange(memory, skyhook, counts.applied, nowMs)
      report(skyhook, newProblems(memory, skyhook, counts))
      const ledger = ledgerIn(snapshot.ledger)
      options.onCounted(metadata.name, skyhookSeries({ skyhook, counts, ledger, nodes: observed.nodes }))
      const notBeforeMs = (target: Request['target']): number =>
        Math.max(
          memory.backoffs.get(target)?.untilMs ?? -Infinity,
          target === 'slots' || target === 'holders'
            ? -Infinity
            : (target === 'ledger' ? own.ledger : own.skyhook).notBeforeMs(),
        )
      const { newerLedger: reportedBefore } = memory
      const turn = planTurn(memory, snapshot, counts, { nowMs, wallMs: clock.wallMs(), notBeforeMs })
      const { newerLedger } = memory
      if (newerLedger !== undefined && newerLedger !== reportedBefore) options.onFailed(new Error(newerLedger))
      return 'request' in turn ? await attempt(turn.request, skyhook) : turn.requeueAtMs
    },
  }
}
