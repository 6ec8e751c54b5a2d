/** What a waiting node may expect, by the ledger and, where it watches them, by slots. Pure. */
import { labelKeys, type Scope } from './names.ts'
import { admissibleIndices, type Limit } from './rule.ts'
import { heldIndices, type Slot } from './slot.ts'
import type { Outlook } from './wait-state.ts'
import * as waiting from './waiting.ts'

export type KnownOfLine = {
  readonly nodeUid: string
  readonly limit: Limit
  /** The limit may change with a count. */
  readonly dependsOnLedger: boolean
  /** Nodes of the next batch are in line already; the others use the largest batch. Absent without a policy. */
  readonly batches?: { readonly next: number; readonly most: number } | undefined
  /** From the ledger; undefined where no census has counted, or the slots have no line. */
  readonly queue: waiting.Queue | undefined
  /** For how long the ledger has had this value. */
  readonly unchangedMs: number
  /** Slots of the control plane and of joining nodes have no line: a refused node watches all of them. */
  readonly hasLine: boolean
  /** Watching some of the slots does not show what is free, see below. */
  readonly needsAllSlots: boolean
  /** Agents in the cluster that may want the same slots. */
  readonly others: number
  /** A census may be about to count for this spec. */
  readonly isCountAwaited: boolean
  /** How many of the watched slots are free. Undefined until the watch shows them. */
  readonly free: number | undefined
  readonly asleep: waiting.Asleep
  /** How long the API server took to answer last. */
  readonly answerMs: number
  /** The node's place while the ledger does not change: at least 0, below 1, drawn again for each look. */
  readonly lot: number
}

/** A census writes the first count of a Skyhook sooner. */
const firstCountMs = 2_000
/** Between two looks for a census that is missing. */
const missingCountMs = 30_000
/** Without a count, all nodes together read the ledger forty times a second, each every five seconds at most. */
const lotMsPerNode = 25
const minLotMs = 5_000
/** If the ledger has not changed for this long, the census may be gone, or the first nodes in line cannot ask. */
export const staleMs = 300_000
/** With a ledger that does not change, which may last for hours. */
const minStaleLotMs = 30_000
/**
 * Nodes in line that do not see the ledger read it at this interval; the more nodes there are, the longer each waits.
 */
const lineLookMs = 10_000
const lineLookMsPerNode = 50

/** @param random at least 0, below 1 */
export function outlookOf(known: KnownOfLine, random: number): Outlook {
  const { nodeUid, limit, queue, others, free, batches, hasLine } = known
  if (limit === 'unlimited') return { is: 'unlimited' }
  const countMs = known.isCountAwaited ? firstCountMs * (1 + random) : missingCountMs * (1 + random / 2)
  if (typeof limit === 'object') return { is: 'uncounted', lookMs: countMs, isFull: false }
  const staleLookMs = staleMs * (1 + random / 2)
  if (limit === 0) return { is: known.dependsOnLedger ? 'uncounted' : 'closed', lookMs: staleLookMs, isFull: true }
  if (queue === undefined && hasLine && known.isCountAwaited && waiting.isCrowded(others, limit))
    return { is: 'uncounted', lookMs: countMs, isFull: false }

  const { matched, waiters } = queue ?? { matched: others, waiters: others }
  const line = waiting.lineLength(Math.max(limit, batches?.next ?? 0), matched)
  // where places are unknown, random nodes come forward, about a line of them at a time
  const isByLot = hasLine && matched > line && (queue === undefined || known.unchangedMs >= staleMs)
  const lotMs = Math.max(queue === undefined ? minLotMs : minStaleLotMs, lotMsPerNode * others) * (1 - random / 2)
  const ownRank = queue === undefined ? Infinity : waiting.rankOf(nodeUid, queue)
  const rank = Math.min(isByLot ? Math.floor(known.lot * matched) : Infinity, ownRank)
  if (hasLine && matched > line && rank >= line) {
    const sleepMs = waiting.sleepMs(rank, Math.max(limit, batches?.most ?? 0), matched, known.asleep, random)
    return { is: 'far', lookMs: isByLot ? lotMs : sleepMs, isFull: false }
  }
  const rivals = Math.min(line, waiters)
  const watched = known.needsAllSlots ? 'all' : waiting.watchedIndices(nodeUid, limit, rivals)
  if (free !== undefined && free > 0) {
    const watchers = watched === 'all' ? rivals : (rivals * watched.length) / limit
    const isAnyFree = watched !== 'all' && free === watched.length
    const stepMs = waiting.handOverStepMs(known.answerMs)
    return { is: 'free', askMs: waiting.handOverDelayMs(watchers / free, isAnyFree ? limit : free, stepMs, random) }
  }
  const lineMs = watched === 'all' ? staleLookMs : Math.max(lineLookMs, lineLookMsPerNode * rivals) * (1 + random / 2)
  return { is: 'in-line', watched, lookMs: isByLot ? lotMs : lineMs, isFull: free !== undefined }
}

/**
 * Whether some slots alone would not show a node what is free: slots of older agents lack the index by which they are
 * watched; after a cut of the budget, or beside slots without an index, an index that nobody holds may not be taken.
 * @param slots all of the scope
 */
export function needsAllSlots(slots: readonly Slot[], scope: Scope, limit: Limit): boolean {
  if (typeof limit !== 'number') return false
  const held = heldIndices(slots, scope)
  const isIndexed = ({ index, lease }: Slot): boolean =>
    index === Infinity || lease.metadata.labels?.[labelKeys.slotIndex] === String(index)
  const below = new Set(held.filter((index) => index < limit)).size
  return !slots.every(isIndexed) || below + admissibleIndices(held, limit).length < limit
}
