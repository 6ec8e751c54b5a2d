import { agentsIn } from '../../lease/ledger.ts'
import type { Limit } from '../../lease/rule.ts'
import { type Scope, skyhookScope } from '../../lease/names.ts'
import type { Lease, Slot } from '../../lease/slot.ts'
import type { Queue } from '../../lease/waiting.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { FleetSize } from '../state/fleet-size.ts'
import {
  type Batches,
  batchesOf,
  compartmentNames,
  compartmentOf,
  epochOf,
  limitOf,
  queueOf,
} from '../../lease/budget/budget.ts'

/** What a waiting node knows of the budget and of those who wait with it. */
export type QueueKnowledge = {
  readonly limit: () => Limit
  /** Of everyone in the cluster, while nobody has counted. */
  readonly queue: () => Queue
  ledger(): Lease | undefined
  /** The ledger says how many slots there are, and who else waits for one of this spec. */
  isCounted(): boolean
  /** The budget depends on the ledger. */
  needsLedger(): boolean
  /** The spec as it was last read. */
  view(): SkyhookView
  update(view: SkyhookView): void
  /** `slots`: of the same LIST. */
  learn(ledgers: readonly Lease[], slots?: readonly Slot[]): void
  /** The open batch; undefined without a policy. */
  epoch(): number | undefined
  /** Undefined without a policy. */
  batches(): Batches | undefined
  /** Places of the open batch that no node has taken, as the count says; 0 without a policy. */
  freeInBatch(): number
  /** Of this node. */
  scope(): Scope
  /** A slot went from one node to the next. */
  passedOn(): void
  /**
   * Nodes that stopped waiting, per ms, since the first call, or since the rollout began again; with batches, if each
   * had as many as one may have.
   */
  nodesPerMs(): number
  /** For how long the ledger has been as it is, in ms. */
  ledgerAgeMs(): number
}

/** How far a rollout had come at some time. `batch`: number of the open one; undefined without a policy. */
type SeenProgress = { readonly waiters: number; readonly batch: number | undefined; readonly atMs: number }

/** Negative where the rollout began again, or more nodes wait; undefined where a policy came or went. */
function nodesBetween(first: SeenProgress, now: SeenProgress, mostPerBatch: number): number | undefined {
  if (first.batch === undefined && now.batch === undefined) return first.waiters - now.waiters
  if (first.batch === undefined || now.batch === undefined) return undefined
  return (now.batch - first.batch) * mostPerBatch
}

export function createQueueKnowledge(first: SkyhookView, fleet: FleetSize, clock: Clock): QueueKnowledge {
  let view = first
  let ledgers: readonly Lease[] = []
  let handOvers = 0
  let seen = { resourceVersion: '', sinceMs: clock.monotonicMs() }
  let firstAsked: SeenProgress | undefined
  let slots: readonly Slot[] = []
  const limit = (): Limit => limitOf(view, ledgers, slots)

  function queue(): Queue {
    const { matched, waiters } = queueOf(view, ledgers) ?? { matched: fleet.agents(), waiters: fleet.agents() }
    // as the ledger said, less one node per slot for each time that the slot of this node's place was passed on
    const current = limit()
    const passed = handOvers * (typeof current === 'number' ? current : 1)
    return { matched, waiters: Math.max(1, waiters - passed) }
  }

  return {
    limit,
    queue,
    ledger: () => ledgers[0],
    isCounted: () => typeof limit() !== 'object' && queueOf(view, ledgers) !== undefined,
    needsLedger: () => typeof limitOf(view, []) === 'object',
    view: () => view,
    update: (latest) => void (view = latest),
    epoch: () => epochOf(view, ledgers),
    batches: () => batchesOf(view, ledgers),
    freeInBatch() {
      const [slotsNow, batch] = [limit(), batchesOf(view, ledgers)?.open]
      if (typeof slotsNow !== 'number' || batch?.notWaiting === undefined) return 0
      const { matched, waiters } = queue()
      const taken = matched - waiters - batch.notWaiting
      // slots that failed in earlier batches are beside the size
      return Math.max(0, Math.min(slotsNow, batch.size) - Math.max(0, taken))
    },
    scope: () => skyhookScope(view.metadata, compartmentOf(view, ledgers) ?? '', compartmentNames(view)),
    learn(found, foundSlots = []) {
      ledgers = found
      slots = foundSlots
      handOvers = 0
      const agents = agentsIn(ledgers)
      if (agents !== undefined) fleet.observe(agents)
      const resourceVersion = ledgers[0]?.metadata.resourceVersion ?? ''
      if (seen.resourceVersion !== resourceVersion) seen = { resourceVersion, sinceMs: clock.monotonicMs() }
    },
    passedOn: () => void handOvers++,
    nodesPerMs() {
      const batches = batchesOf(view, ledgers)
      if (batches === undefined && view.spec.deploymentPolicy) {
        firstAsked = undefined // stopped, or not known: what comes next is not compared with what was before
        return 0
      }
      const now = { waiters: queue().waiters, batch: batches?.open.currentBatch, atMs: clock.monotonicMs() }
      const nodes = firstAsked && nodesBetween(firstAsked, now, batches?.most ?? 0)
      if (firstAsked === undefined || nodes === undefined || nodes < 0) {
        firstAsked = now
        return 0
      }
      return now.atMs > firstAsked.atMs ? nodes / (now.atMs - firstAsked.atMs) : 0
    },
    ledgerAgeMs: () => clock.monotonicMs() - seen.sinceMs,
  }
}
