/**
 * Admission of slots. A slot is a numbered Lease; its number is the only thing nodes have to agree on.
 *
 * Invariant: an admission from a LIST taken after the last change of the limit leaves no more holders than the limit,
 * also when the limit has just fallen, also beside slots that were never admitted (test/model/admission.test.ts walks
 * every interleaving).
 *
 * Proof: let A be the holders admitted by the rule since the limit changed, B the others that still hold, j the largest
 * index in A. A's indices are distinct, at most j, and B uses none of them: |A| ≤ j + 1 − |B at or below j|. The owner
 * of j saw B's slots above j held: j + |B above j| < limit. Together: |A| + |B| ≤ j + 1 + |B above j| ≤ limit.
 */
import type { Budget } from '../schemas/budget.ts'

/** Indices in use, in any order. Slots without an index (recovery, unlimited) count as Infinity: above every index. */
export type HeldIndices = readonly number[]

/** More slots than any cluster has nodes; bounds the cost of an absurd budget. All agents must use the same number. */
const maxLimit = 65_536

/** Free indices that a node may take now, ascending; empty exactly when `held` fills the limit. */
export function admissibleIndices(heldIndices: HeldIndices, limit: number): number[] {
  const end = Math.min(limit, maxLimit)
  const taken = new Set(heldIndices)
  const ascending = heldIndices.toSorted((a, b) => a - b)
  const free: number[] = []
  let notAbove = 0
  for (let index = 0; index < end; index++) {
    while ((ascending[notAbove] ?? Infinity) <= index) notAbove++
    const above = ascending.length - notAbove
    if (index + above >= end) continue // `index < limit` alone admits too many after a cut
    if (!taken.has(index)) free.push(index)
  }
  return free
}

/**
 * Whether a holder that has not started any work may keep its slot under the current limit; otherwise it yields.
 * `others`: without its own slot. A slot without an index (Infinity) never qualifies, and its holder never asks.
 */
export function isStillAdmissible(ownIndex: number, otherIndices: HeldIndices, limit: number): boolean {
  return ownIndex + otherIndices.filter((other) => other > ownIndex).length < limit
}

/**
 * Spreads racing nodes over the free indices. A node tries the same index again while the free ones stay the same.
 * @param preferred taken if it is free: one that few others have seen free
 */
export const pickIndex = (free: readonly number[], nodeUid: string, preferred?: number): number | undefined =>
  free.find((index) => index === preferred) ?? free[fnv1a(nodeUid) % free.length]

/** What the census published for this scope, or why it cannot be used: absent, of another Skyhook, of an older spec. */
export type CountedScope = { readonly matched: number } | { readonly unknown: string }

export type Limit = number | 'unlimited' | { readonly unknown: string }

/**
 * How many nodes of the scope may be out at once. No budget at all = 'unlimited'; count as it is (0: nobody starts);
 * percent of the matched nodes, rounded down but at least 1 (0 %: nobody), at most `maxCount`. A percentage is unknown
 * without the census.
 */
export function effectiveLimit(budget: Budget | undefined, counted: CountedScope): Limit {
  const { count, percent } = budget ?? {}
  if (budget === undefined || (percent === undefined && count === undefined)) return 'unlimited'
  if (count === undefined && percent !== 0 && 'unknown' in counted) return counted
  return ceilingOf(budget, 'matched' in counted ? counted.matched : 0)
}

/** What the budget allows of so many nodes; Infinity without one. */
export function ceilingOf({ count, percent, maxCount = Infinity }: Budget, matched: number): number {
  if (count !== undefined) return count
  if (percent === undefined) return Infinity
  return percent === 0 ? 0 : Math.min(maxCount, percentOf(percent, matched))
}

/**
 * How many joining nodes may be at work at once: they cost no capacity. `count` = what the spec says, else the larger
 * of the Skyhook's limit and a tenth of the matched nodes, where they are counted. Without `count` a limit of 0 stops
 * these as well.
 */
export function bootstrapLimit(count: number | undefined, limit: Limit, counted: CountedScope): Limit {
  if (count !== undefined) return count
  if (typeof limit !== 'number' || limit === 0) return limit
  return 'matched' in counted ? Math.max(limit, percentOf(10, counted.matched)) : limit
}

/** max(1, floor(percent · nodes / 100)) in integers: a floating quotient can land just below a whole number. */
function percentOf(percent: number, nodes: number): number {
  const hundredths = percent * nodes
  return Math.max(1, (hundredths - (hundredths % 100)) / 100)
}

/** FNV-1a, 32 bit: spreads UUIDs evenly and needs no library. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
