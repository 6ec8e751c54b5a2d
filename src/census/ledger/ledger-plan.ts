import { type Ledger, type LedgerScope, selectorHash } from '../../lease/ledger.ts'
import { type RolloutTimes, readSlotTimes, withSlotTime } from '../../lease/slot-times.ts'
import type { Lease } from '../../lease/slot.ts'
import { canonicalJson } from '../../schemas/canonical-json.ts'
import type { BatchState } from '../../schemas/deployment-policy.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { formatTime } from '../../schemas/time.ts'
import type { BatchPlan } from './batch-plan.ts'
import { type CompartmentCount, type Counts, isInLine } from '../model/count.ts'
import type { NodeFact } from '../model/node-facts.ts'

export type LedgerInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  /** Ready agents, if the pods can be listed. */
  readonly agents: number | undefined
  /** The current ledger; undefined if there is none or it cannot be read. */
  readonly currentLedger: Ledger | undefined
  /**
   * The current ledger stays as it is. It was counted by a newer version, for a policy that is not known, or for a
   * later generation of the Skyhook, which may be about to be seen.
   */
  readonly isKept: boolean
  /** What this census remembers of the counts for this selector, by compartment. */
  readonly matched: MatchedCounts | undefined
  /** Of a Skyhook with a policy. */
  readonly batches?: BatchPlan
  /** Of this and earlier rollouts. Never causes a write. */
  readonly slotTimes: readonly RolloutTimes[]
  readonly lastWriteMs: number | undefined
  /** Monotonic. */
  readonly nowMs: number
  readonly wallMs: number
}

export type MatchedCounts = Readonly<Record<string, DampedCount>>

export type LedgerPlan = { readonly ledger: Ledger; readonly matched: MatchedCounts; readonly writeAtMs: number }

/**
 * The desired ledger, and when to write it. What decides a budget is written immediately. Counters that only spread
 * requests are throttled: waiting nodes read them now and then.
 */
export function planLedger(input: LedgerInput): LedgerPlan {
  const { skyhook, counts, agents, currentLedger, isKept, batches, slotTimes, lastWriteMs, nowMs, wallMs } = input
  const { uid, generation = 0 } = skyhook.metadata
  const hash = selectorHash(skyhook.spec.nodeSelectors)
  const isSameCount =
    currentLedger !== undefined && currentLedger.skyhookUID === uid && currentLedger.selectorHash === hash
  const nextCount = ({ name, nodes }: CompartmentCount): DampedCount => {
    const published = isSameCount ? currentLedger.compartments[name]?.matched : undefined
    const matched = input.matched?.[name]
    const before = published === undefined ? undefined : matched?.published === published ? matched : { published }
    return nextDampedCount(before, nodes.length, nowMs)
  }
  const matched = Object.fromEntries(counts.compartments.map((each) => [each.name, nextCount(each)]))
  const ledger: Ledger = {
    v: 1,
    skyhookUID: uid,
    generation,
    applied: counts.applied,
    selectorHash: hash,
    ...(agents !== undefined && { agents }),
    waiters: counts.waiters,
    countedAt: formatTime(wallMs),
    compartments: Object.fromEntries(
      counts.compartments.map((each) => [
        each.name,
        each.name === ''
          ? { matched: matched['']?.published ?? 0, completed: counts.complete }
          : scopeOf(each, matched[each.name]?.published ?? 0, batches?.batches[each.name]),
      ]),
    ),
    ...policyFields(counts, batches),
    ...(slotTimes.length > 0 && { slotTimes }),
  }
  return { ledger, matched, writeAtMs: isKept ? Infinity : ledgerDueAtMs(currentLedger, ledger, lastWriteMs) }
}

function scopeOf({ nodes, candidates }: CompartmentCount, matched: number, batch: BatchState | undefined): LedgerScope {
  const completed = nodes.filter(({ status }) => status === 'complete').length
  const waiters = nodes.filter(isInLine).length
  return { matched, completed, waiters, ...(candidates !== undefined && { candidates }), ...(batch && { batch }) }
}

function policyFields({ policy }: Counts, batches: BatchPlan | undefined): Partial<Ledger> {
  if (policy?.state !== 'found') return {}
  const { uid, generation } = policy
  return { policy: { uid, generation }, ...(batches?.reset !== undefined && { reset: batches.reset }) }
}

function ledgerDueAtMs(currentLedger: Ledger | undefined, next: Ledger, lastWriteMs: number | undefined): number {
  if (currentLedger === undefined) return -Infinity
  if (budgetInputs(currentLedger) !== budgetInputs(next)) return -Infinity
  const isFinal = completed(next) === sumOf(next, ({ matched }) => matched)
  const hasMoved =
    differsSignificantly(currentLedger.waiters, next.waiters) ||
    Math.abs(currentLedger.waiters - next.waiters) >= minMovedWaiters ||
    differsSignificantly(currentLedger.agents ?? 0, next.agents ?? 0) ||
    differsSignificantly(completed(currentLedger), completed(next)) ||
    (isFinal && completed(currentLedger) !== completed(next))
  if (!hasMoved) return Infinity
  return lastWriteMs === undefined ? -Infinity : lastWriteMs + ledgerIntervalMs(next.agents ?? 0)
}

/** Sleeping nodes rely on it: it must not be older than the work of a node takes. */
const maxLedgerIntervalMs = 5_000
/** Only some of the agents watch a ledger; the others read it when they wake. */
const ledgerIntervalMs = (agents: number): number => Math.min(maxLedgerIntervalMs, Math.max(1_000, agents))

/** Half of what the line of the next nodes has to spare (src/lease/waiting.ts): it must not become empty meanwhile. */
const minMovedWaiters = 5

/** What a limit depends on. */
function budgetInputs({ skyhookUID, generation, applied, selectorHash, compartments, policy, reset }: Ledger): string {
  const scopes = Object.entries(compartments).map(([name, { matched, candidates, batch }]) => [
    name,
    { matched, candidates, batch },
  ])
  return canonicalJson([skyhookUID, generation, applied, selectorHash, policy, reset, Object.fromEntries(scopes)])
}

const sumOf = ({ compartments }: Ledger, of: (scope: LedgerScope) => number): number =>
  Object.values(compartments).reduce((sum, scope) => sum + of(scope), 0)
const completed = (ledger: Ledger): number => sumOf(ledger, (scope) => scope.completed)

/** By a fifth, or to or from zero. */
const differsSignificantly = (before: number, after: number): boolean =>
  before !== after && (before === 0 || after === 0 || Math.abs(after - before) * 5 >= before)

/**
 * A ledger that was counted for a later generation than the watch of Skyhooks shows. Usually the watch is late. After a
 * restore of etcd, however, a Skyhook repeats its generations, and a census may write the ledger from the lost ones
 * that it still remembers. A LIST of the Skyhooks distinguishes the two. Pure.
 */

export type AheadLedger = {
  /** Of the Lease. */
  readonly resourceVersion: string
  /**
   * When to ask for a LIST, monotonic ms: a watch is seldom that late. Infinity once the generation is known to be
   * lost.
   */
  readonly asksAtMs: number
  /** Skyhooks were listed since, and this one is at an earlier generation: etcd has lost the history of the ledger. */
  readonly isLost: boolean
}

const delayMs = 2_000

/**
 * The state of the ledger in the Lease; undefined if it is not ahead of the Skyhook. `isListed`: Skyhooks were listed
 * since `before`. Nothing is reconciled during a LIST, so it started when the ledger was known.
 */
export function aheadLedger(
  before: AheadLedger | undefined,
  { lease, ledger }: { readonly lease: Lease | undefined; readonly ledger: Ledger | undefined },
  { metadata: { uid, generation = 0 } }: Skyhook,
  { nowMs, isListed }: { readonly nowMs: number; readonly isListed: boolean },
): AheadLedger | undefined {
  if (lease === undefined || ledger?.skyhookUID !== uid || ledger.generation <= generation) return undefined
  const { resourceVersion } = lease.metadata
  if (before?.resourceVersion !== resourceVersion) return { resourceVersion, asksAtMs: nowMs + delayMs, isLost: false }
  return isListed ? { ...before, asksAtMs: Infinity, isLost: true } : before
}

/**
 * How long nodes are at work, as the census sees it: from the turn in which a node is first at work to the one in which
 * it is complete. That is how long it holds its slot, except for the soak and the second until its Node is updated.
 * Pure.
 */

export type WorkTimes = {
  readonly slotTimes: readonly RolloutTimes[]
  /** Since when nodes are at work, monotonic ms; NaN: since before this census. */
  readonly sinceMs: ReadonlyMap<string, number>
}

/**
 * After a turn that counted these nodes. The first turn of a census continues what the ledger says. Nodes that it finds
 * at work started at an unknown time and do not count.
 */
export function nextWorkTimes(
  before: WorkTimes | undefined,
  { nodes, applied }: Pick<Counts, 'applied'> & { readonly nodes: readonly Pick<NodeFact, 'name' | 'status'>[] },
  ledger: Ledger | undefined,
  nowMs: number,
): WorkTimes {
  let slotTimes = before?.slotTimes ?? readSlotTimes(ledger?.slotTimes)
  const sinceMs = new Map<string, number>()
  for (const { name, status } of nodes) {
    const startedMs = before?.sinceMs.get(name)
    if (isAtWork(status)) sinceMs.set(name, startedMs ?? (before === undefined ? NaN : nowMs))
    else if (startedMs === undefined) continue
    else if (status === 'complete') {
      if (!Number.isNaN(startedMs)) slotTimes = withSlotTime(slotTimes, applied, nowMs - startedMs)
    } else if (mayHaveSlot(status)) sinceMs.set(name, startedMs)
  }
  return { slotTimes, sinceMs }
}

const isAtWork = (status: NodeStatus): boolean => status === 'in_progress' || status === 'erroring'

/** A node that waits has no slot, or started again. */
const mayHaveSlot = (status: NodeStatus): boolean => status !== 'waiting'

/** A node count that falls immediately and rises after a delay, so that short-lived nodes do not widen the budget. */
type PendingRise = { readonly sinceMs: number; readonly lowest: number }
export type DampedCount = { readonly published: number; readonly pendingRise?: PendingRise }

export const riseDelayMs = 30_000

/**
 * The next published count. `before` undefined = the first count for this selector: published as it is. A rise is
 * published as the lowest count during its delay.
 */
export function nextDampedCount(before: DampedCount | undefined, counted: number, nowMs: number): DampedCount {
  if (before === undefined || counted <= before.published) return { published: counted }
  const pendingRise: PendingRise = {
    sinceMs: before.pendingRise?.sinceMs ?? nowMs,
    lowest: Math.min(before.pendingRise?.lowest ?? counted, counted),
  }
  if (nowMs - pendingRise.sinceMs < riseDelayMs) return { published: before.published, pendingRise }
  return pendingRise.lowest === counted
    ? { published: counted }
    : { published: pendingRise.lowest, pendingRise: { sinceMs: nowMs, lowest: counted } }
}

/** When the count must be published again without any change. */
export const dampedCountDueAtMs = ({ pendingRise }: DampedCount): number =>
  pendingRise === undefined ? Infinity : pendingRise.sinceMs + riseDelayMs
