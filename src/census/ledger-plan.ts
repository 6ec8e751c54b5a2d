import type { Ledger } from '../lease/ledger.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { selectorHash } from '../lease/selector-hash.ts'
import type { Counts } from './count.ts'
import { nextMatched, type Matched } from './damped-count.ts'
import { paceMs } from './write-throttle.ts'

export type LedgerInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  /** Ready agents, if the pods can be listed. */
  readonly agents: number | undefined
  /** What the ledger says now; undefined = there is none that can be read. */
  readonly shown: Ledger | undefined
  /** What this census remembers of the count for this selector. */
  readonly matched: Matched | undefined
  readonly lastWriteMs: number | undefined
  /** Monotonic. */
  readonly nowMs: number
  readonly wallMs: number
}

export type LedgerPlan = { readonly ledger: Ledger; readonly matched: Matched; readonly writeAtMs: number }

/**
 * What the ledger should say, and when to write it. What decides a budget goes out at once. Counters that only spread requests go out
 * at a pace, and when they have moved enough to matter: every write is news to every node that waits.
 */
export function planLedger({ skyhook, counts, agents, shown, matched, lastWriteMs, nowMs, wallMs }: LedgerInput): LedgerPlan {
  const { uid, generation = 0 } = skyhook.metadata
  const hash = selectorHash(skyhook.spec.nodeSelectors)
  const isSameCount = shown !== undefined && shown.skyhookUID === uid && shown.selectorHash === hash
  const published = isSameCount ? shown.compartments['']?.matched : undefined
  const before = published === undefined ? undefined : matched?.published === published ? matched : { published }
  const next = nextMatched(before, counts.nodes.length, nowMs)
  const ledger: Ledger = {
    v: 1,
    skyhookUID: uid,
    generation,
    applied: counts.applied,
    selectorHash: hash,
    ...(agents !== undefined && { agents }),
    waiters: counts.waiters,
    countedAt: new Date(wallMs).toISOString().replace(/\.\d+Z$/, 'Z'),
    compartments: { '': { matched: next.published, completed: counts.complete } },
  }
  return { ledger, matched: next, writeAtMs: dueMs(shown, ledger, lastWriteMs) }
}

function dueMs(shown: Ledger | undefined, next: Ledger, lastWriteMs: number | undefined): number {
  if (shown !== undefined && shown.skyhookUID === next.skyhookUID && shown.generation > next.generation) return Infinity // we see an old spec
  if (shown === undefined || decides(shown) !== decides(next)) return -Infinity
  const completed = (ledger: Ledger): number => ledger.compartments['']?.completed ?? 0
  const isFinal = completed(next) === next.compartments['']?.matched
  const hasMoved =
    differsMuch(shown.waiters, next.waiters) ||
    differsMuch(shown.agents ?? 0, next.agents ?? 0) ||
    differsMuch(completed(shown), completed(next)) ||
    (isFinal && completed(shown) !== completed(next))
  if (!hasMoved) return Infinity
  return lastWriteMs === undefined ? -Infinity : lastWriteMs + 2 * paceMs(next.agents ?? 0)
}

const decides = (ledger: Ledger): string =>
  JSON.stringify([ledger.skyhookUID, ledger.generation, ledger.applied, ledger.selectorHash, ledger.compartments['']?.matched])

/** By a fifth, or to or from nothing. */
const differsMuch = (before: number, after: number): boolean =>
  before !== after && (before === 0 || after === 0 || Math.abs(after - before) * 5 >= before)
