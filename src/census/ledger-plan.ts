import type { RolloutTimes } from '../lease/slot-times.ts'
import type { Ledger, LedgerScope } from '../lease/ledger.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { canonicalJson } from '../schemas/canonical-json.ts'
import { formatTime } from '../schemas/time.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { BatchState } from '../schemas/batch-state.ts'
import type { BatchPlan } from './batch-plan.ts'
import type { CompartmentCount } from './compartments.ts'
import { isInLine, type Counts } from './count.ts'
import { nextDampedCount, type DampedCount } from './damped-count.ts'

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
