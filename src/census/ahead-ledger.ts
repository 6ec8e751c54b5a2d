/**
 * A ledger that was counted for a later generation than the watch of Skyhooks shows. Mostly that watch is late. But
 * after a restore of etcd, a Skyhook counts its generations a second time, and the ledger may be written from what a
 * census still remembers of the lost ones. A LIST of the Skyhooks tells which of the two it is. Pure.
 */
import type { Ledger } from '../lease/ledger.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'

export type AheadLedger = {
  /** Of the Lease. */
  readonly resourceVersion: string
  /** When to ask for a LIST, monotonic ms. */
  readonly asksAtMs: number
  /** Skyhooks were listed since, and this one has not got to the generation: etcd has lost the history of the ledger. */
  readonly isLost: boolean
}

/** A watch is seldom that late. */
const firstDelayMs = 2_000
/** What is asked for more often is not listed. */
const intervalMs = 30_000

/** After a LIST was asked for. */
export const askedAt = (ahead: AheadLedger, nowMs: number): AheadLedger => ({ ...ahead, asksAtMs: nowMs + intervalMs })

/**
 * What is known of the ledger in the Lease; undefined if it is not ahead of the Skyhook. `isListed`: Skyhooks were
 * listed since `before`. No turn is made during a LIST, so it started when the ledger was known.
 */
export function aheadLedger(
  before: AheadLedger | undefined,
  {
    lease,
    ledger,
    isListed,
  }: { readonly lease?: Lease | undefined; readonly ledger?: Ledger | undefined; readonly isListed: boolean },
  { metadata: { uid, generation = 0 } }: Skyhook,
  nowMs: number,
): AheadLedger | undefined {
  if (lease === undefined || ledger?.skyhookUID !== uid || ledger.generation <= generation) return undefined
  const { resourceVersion } = lease.metadata
  if (before?.resourceVersion !== resourceVersion)
    return { resourceVersion, asksAtMs: nowMs + firstDelayMs, isLost: false }
  return isListed ? { ...before, asksAtMs: Infinity, isLost: true } : before
}
