/** What a node that waits may expect, by the ledger and, where it watches them, by the slots. Pure. */
import type { Limit } from './rule.ts'
import type { Outlook } from './wait-state.ts'
import * as waiting from './waiting.ts'

export type KnownOfLine = {
  readonly nodeUid: string
  readonly limit: Limit
  /** The limit may change with a count. */
  readonly dependsOnLedger: boolean
  /** Those of the next batch are in line already; the others go by the largest one. 0 without a policy. */
  readonly batches: { readonly next: number; readonly most: number }
  /** As the ledger says; undefined where nobody has counted, or the slots have no line. */
  readonly queue: waiting.Queue | undefined
  /** It has said so for long: the census may be gone, or those who come first may not be able to come forward. */
  readonly isStale: boolean
  /** Agents in the cluster that may want the same slots. */
  readonly others: number
  /** A census may be about to count for this spec. */
  readonly isCountAwaited: boolean
  /** The slots that are watched; undefined before they are shown. */
  readonly slots: ShownSlots | undefined
  /** Of the last sleep: when the node read the ledger before it, and its rank at that time. */
  readonly lastSleep: { readonly rank: number; readonly ms: number } | undefined
  /** How long the API server took to answer last. */
  readonly answerMs: number
  /** The node's place while the ledger says nothing new: at least 0, below 1, drawn anew for each look. */
  readonly lot: number
}

export type ShownSlots = {
  /** By the admission rule. */
  readonly free: number
  /** Places of the nodes that hold one. */
  readonly holders: ReadonlySet<string>
}

/** A census writes the first count of a Skyhook sooner. */
const firstCountMs = 2_000
/** Between two looks for a census that is missing. */
const missingCountMs = 30_000
/** Without a ledger, all nodes together read it twenty times a second, each of them every five seconds at most. */
const lotMsPerNode = 50
const minLotMs = 5_000
/** With one that stands still. */
const staleLotMs = 60_000
/** What is not heard of by a watch. */
const recheckMs = 300_000

/** @param random at least 0, below 1 */
export function outlookOf(known: KnownOfLine, random: number): Outlook {
  const { nodeUid, limit, queue, others, slots, batches } = known
  const lookMs = recheckMs * (1 + random / 2)
  if (limit === 'unlimited') return { is: 'unlimited' }
  const countMs = known.isCountAwaited ? firstCountMs * (1 + random) : missingCountMs * (1 + random / 2)
  if (typeof limit === 'object') return { is: 'uncounted', lookMs: countMs }
  if (limit === 0) return { is: 'closed', lookMs, dependsOnLedger: known.dependsOnLedger }
  const isCrowded = others > waiting.lineLength(limit, others)
  if (isCrowded && known.isCountAwaited && queue?.front === undefined) return { is: 'uncounted', lookMs: countMs }

  const matched = queue?.matched ?? others
  // where places say nothing, any of the nodes come forward, about a line of them at a time
  const line = waiting.lineLength(Math.max(limit, batches.next), matched)
  const isByLot = matched > line && (queue === undefined || known.isStale)
  const lotRank = isByLot ? Math.floor(known.lot * matched) : Infinity
  const lotMs = (queue === undefined ? Math.max(minLotMs, lotMsPerNode * others) : staleLotMs) * (1 - random / 2)
  const rank = Math.min(lotRank, queue === undefined ? line : waiting.rankOf(nodeUid, queue))
  const most = Math.max(limit, batches.most)
  const { ms: lastSleepMs = 0, rank: rankBefore = rank } = known.lastSleep ?? {}
  const nodesPerMs = queue === undefined || lastSleepMs === 0 ? 0 : Math.max(0, rankBefore - rank) / lastSleepMs
  const sleepMs = waiting.sleepMs(rank, most, matched, { nodesPerMs, lastSleepMs }, random)
  if (rank >= line && matched > line) return { is: 'far', lookMs: isByLot ? lotMs : sleepMs, rank }
  if (slots !== undefined && slots.free > 0) return { is: 'free', askMs: askMs(known, slots, random) }
  const front = queue?.front
  if (front !== undefined && slots === undefined && rank < front.due)
    return { is: 'due', lookMs, askMs: waiting.dueDelayMs(front.due, random) }
  const isNear = front === undefined || rank === lotRank || rank < Math.max(front.places.length, waiting.spareRanks)
  const is = isNear ? 'near' : 'in-line'
  return { is, lookMs: isByLot ? lotMs : lookMs, isFull: slots !== undefined }
}

function askMs({ nodeUid, queue, others, limit, answerMs }: KnownOfLine, slots: ShownSlots, random: number): number {
  const { free, holders } = slots
  const front = queue?.front
  if (front === undefined) {
    const { matched, waiters } = queue ?? { matched: others, waiters: others }
    const line = waiting.lineLength(typeof limit === 'number' ? limit : 1, matched)
    return waiting.lotDelayMs(Math.min(line, waiters), free, random)
  }
  const place = waiting.placeKey(nodeUid)
  const before = front.places.filter((one) => one < place && !holders.has(one)).length
  return waiting.handOverDelayMs(before, free, waiting.handOverStepMs(answerMs))
}
