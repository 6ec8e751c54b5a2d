/**
 * A ledger that was counted for a later generation than the watch of Skyhooks shows. Mostly that watch is late. But
 * after a restore of etcd, a Skyhook counts its generations a second time, and the ledger may be written from what a
 * census still remembers of the lost ones. A read of the Skyhook tells which of the two it is. Pure.
 */
import type { Ledger } from '../lease/ledger.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { type Backoff, backoffMs } from '../schemas/backoff.ts'

export type AheadLedger = {
  /** Of the Lease. */
  readonly resourceVersion: string
  readonly reads: number
  /** When to read the Skyhook (monotonic ms), no cache between; Infinity once it is known what the ledger is. */
  readonly readAtMs: number
  /** The Skyhook has not got to this generation: the ledger is of a history that etcd has lost. */
  readonly isLost: boolean
}

/** A watch is seldom that late. */
const readBackoff: Backoff = { initialMs: 2_000, maxMs: 60_000 }

const isAhead = (ledger: Ledger, { metadata: { uid, generation = 0 } }: Skyhook): boolean =>
  ledger.skyhookUID === uid && ledger.generation > generation

/** What is known of the ledger in the Lease; undefined if it is not ahead of the Skyhook. */
export function aheadLedger(
  before: AheadLedger | undefined,
  { lease, ledger }: { readonly lease: Lease | undefined; readonly ledger: Ledger | undefined },
  skyhook: Skyhook,
  nowMs: number,
): AheadLedger | undefined {
  if (lease === undefined || ledger === undefined || !isAhead(ledger, skyhook)) return undefined
  const { resourceVersion } = lease.metadata
  if (before?.resourceVersion === resourceVersion) return before
  return { resourceVersion, reads: 0, readAtMs: nowMs + backoffMs(1, readBackoff), isLost: false }
}

/** After a read that was sent when the ledger was known. `found`: the Skyhook, if there is one. */
export function afterRead(ahead: AheadLedger, ledger: Ledger, found: Skyhook | undefined, nowMs: number): AheadLedger {
  if (found !== undefined && isAhead(ledger, found)) return { ...ahead, readAtMs: Infinity, isLost: true }
  const reads = ahead.reads + 1
  return { ...ahead, reads, readAtMs: nowMs + backoffMs(reads + 1, readBackoff) }
}
