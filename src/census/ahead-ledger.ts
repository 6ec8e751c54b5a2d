/**
 * A ledger that was counted for a later generation than the watch of Skyhooks shows. Usually the watch is late. After a
 * restore of etcd, however, a Skyhook repeats its generations, and a census may write the ledger from the lost ones
 * that it still remembers. A LIST of the Skyhooks distinguishes the two. Pure.
 */
import type { Ledger } from '../lease/ledger.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'

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
