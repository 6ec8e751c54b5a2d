import type { Ledger } from '../lease/ledger.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { formatTime } from '../schemas/time.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { Counts } from './count.ts'
import { nextDampedCount, type DampedCount } from './damped-count.ts'
import { progressIntervalMs } from './write-throttle.ts'

export type LedgerInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  /** Ready agents, if the pods can be listed. */
  readonly agents: number | undefined
  /** The current ledger; undefined if there is none or it cannot be read. */
  readonly currentLedger: Ledger | undefined
  /** The current ledger was counted for a later generation of the Skyhook, which may be about to be seen. */
  readonly isAhead: boolean
  /** What this census remembers of the count for this selector. */
  readonly matched: DampedCount | undefined
  readonly lastWriteMs: number | undefined
  /** Monotonic. */
  readonly nowMs: number
  readonly wallMs: number
}

export type LedgerPlan = { readonly ledger: Ledger; readonly matched: DampedCount; readonly writeAtMs: number }

/**
 * The desired ledger, and when to write it. What decides a budget is written immediately. Counters that only spread
 * requests are throttled: the nodes that wait read them now and then.
 */
export function planLedger(input: LedgerInput): LedgerPlan {
  const { skyhook, counts, agents, currentLedger, isAhead, matched, lastWriteMs, nowMs, wallMs } = input
  const { uid, generation = 0 } = skyhook.metadata
  const hash = selectorHash(skyhook.spec.nodeSelectors)
  const isSameCount =
    currentLedger !== undefined && currentLedger.skyhookUID === uid && currentLedger.selectorHash === hash
  const published = isSameCount ? currentLedger.compartments['']?.matched : undefined
  const before = published === undefined ? undefined : matched?.published === published ? matched : { published }
  const next = nextDampedCount(before, counts.nodes.length, nowMs)
  const ledger: Ledger = {
    v: 1,
    skyhookUID: uid,
    generation,
    applied: counts.applied,
    selectorHash: hash,
    ...(agents !== undefined && { agents }),
    waiters: counts.waiters,
    countedAt: formatTime(wallMs),
    compartments: { '': { matched: next.published, completed: counts.complete } },
  }
  return { ledger, matched: next, writeAtMs: isAhead ? Infinity : ledgerDueAtMs(currentLedger, ledger, lastWriteMs) }
}

function ledgerDueAtMs(currentLedger: Ledger | undefined, next: Ledger, lastWriteMs: number | undefined): number {
  if (currentLedger === undefined) return -Infinity
  if (budgetInputs(currentLedger) !== budgetInputs(next)) return -Infinity
  const completed = (ledger: Ledger): number => ledger.compartments['']?.completed ?? 0
  const isFinal = completed(next) === next.compartments['']?.matched
  const hasMoved =
    differsSignificantly(currentLedger.waiters, next.waiters) ||
    Math.abs(currentLedger.waiters - next.waiters) >= minMovedWaiters ||
    differsSignificantly(currentLedger.agents ?? 0, next.agents ?? 0) ||
    differsSignificantly(completed(currentLedger), completed(next)) ||
    (isFinal && completed(currentLedger) !== completed(next))
  if (!hasMoved) return Infinity
  return lastWriteMs === undefined ? -Infinity : lastWriteMs + 2 * progressIntervalMs(next.agents ?? 0)
}

/** Half of what the line of the next nodes has to spare (src/lease/waiting.ts): it must not run empty meanwhile. */
const minMovedWaiters = 5

const budgetInputs = ({ skyhookUID, generation, applied, selectorHash, compartments }: Ledger): string =>
  JSON.stringify([skyhookUID, generation, applied, selectorHash, compartments['']?.matched])

/** By a fifth, or to or from nothing. */
const differsSignificantly = (before: number, after: number): boolean =>
  before !== after && (before === 0 || after === 0 || Math.abs(after - before) * 5 >= before)
