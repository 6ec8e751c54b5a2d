/** What a node that waits may expect, by the ledger and, where it watches them, by the slots. Pure. */
import type { Limit } from './rule.ts'
import type { Outlook } from './wait-state.ts'
import * as waiting from './waiting.ts'

export type KnownOfLine = {
  readonly nodeUid: string
  readonly limit: Limit
  /** The limit may change with a count. */
  readonly dependsOnLedger: boolean
  /** Those of the next batch are in line already; the others go by the largest one. Absent without a policy. */
  readonly batches?: { readonly next: number; readonly most: number } | undefined
  /** As the ledger says; undefined where nobody has counted, or the slots have no line. */
  readonly queue: waiting.Queue | undefined
  /** For how long it has said so. */
  readonly unchangedMs: number
  /** Not so those of the control plane and of joining nodes: who is refused watches them all. */
  readonly hasLine: boolean
  /** Agents in the cluster that may want the same slots. */
  readonly others: number
  /** A census may be about to count for this spec. */
  readonly isCountAwaited: boolean
  /** The slots that are watched: by the admission rule, and places of the nodes that hold one. Undefined until shown. */
  readonly slots: { readonly free: number; readonly holders: ReadonlySet<string> } | undefined
  /** Nothing that the node has seen is newer than the count. */
  readonly goesByCount: boolean
  readonly asleep: waiting.Asleep
  /** How long the API server took to answer last. */
  readonly answerMs: number
  /** The node's place while the ledger says nothing new: at least 0, below 1, drawn anew for each look. */
  readonly lot: number
}

/** A census writes the first count of a Skyhook sooner. */
const firstCountMs = 2_000
/** Between two looks for a census that is missing. */
const missingCountMs = 30_000
/** Without a front, all nodes together read the ledger forty times a second, each every five seconds at most. */
const lotMsPerNode = 25
const minLotMs = 5_000
/** The ledger has said the same for so long: the census may be gone, or those who come first cannot ask. */
export const staleMs = 300_000
/** With a ledger that stands still: it may do so for hours. */
const minStaleLotMs = 30_000

/** @param random at least 0, below 1 */
export function outlookOf(known: KnownOfLine, random: number): Outlook {
  const { nodeUid, limit, queue, others, slots, batches } = known
  if (limit === 'unlimited') return { is: 'unlimited' }
  const countMs = known.isCountAwaited ? firstCountMs * (1 + random) : missingCountMs * (1 + random / 2)
  if (typeof limit === 'object') return { is: 'uncounted', lookMs: countMs, isFull: false }
  const front = queue?.front
  const lookMs = staleMs * (1 + random / 2)
  if (limit === 0) return { is: known.dependsOnLedger ? 'uncounted' : 'closed', lookMs, isFull: true }
  if (front === undefined && known.hasLine && known.isCountAwaited && waiting.isCrowded(others, limit))
    return { is: 'uncounted', lookMs: countMs, isFull: false }

  const { matched, waiters } = queue ?? { matched: others, waiters: others }
  const line = waiting.lineLength(Math.max(limit, batches?.next ?? 0), matched)
  const isStale = known.unchangedMs >= staleMs
  // where places say nothing, any of the nodes come forward, about a line of them at a time
  const isByLot = known.hasLine && matched > line && (front === undefined || isStale)
  const lotMs = Math.max(front === undefined ? minLotMs : minStaleLotMs, lotMsPerNode * others) * (1 - random / 2)
  const lotRank = isByLot ? Math.floor(known.lot * matched) : Infinity
  const ownRank = front === undefined ? Infinity : waiting.rankOf(nodeUid, front, waiters)
  const rank = Math.min(lotRank, ownRank)
  if (known.hasLine && matched > line && rank >= line) {
    const sleepMs = waiting.sleepMs(rank, Math.max(limit, batches?.most ?? 0), matched, known.asleep, random)
    return { is: 'far', lookMs: isByLot ? lotMs : sleepMs, isFull: false }
  }
  const turnIn = (before: number, free: number, stepMs: number): Outlook => ({
    is: 'free',
    askMs: waiting.handOverDelayMs(before, free, stepMs),
  })
  if (slots !== undefined && slots.free > 0) {
    const before =
      front === undefined
        ? Math.floor(random * Math.min(line, waiters))
        : waiting.placesBefore(front, waiting.placeKey(nodeUid)).filter((one) => !slots.holders.has(one)).length
    return turnIn(before, slots.free, waiting.handOverStepMs(known.answerMs))
  }
  if (front !== undefined && known.goesByCount && rank < front.due) return turnIn(rank, front.due, waiting.dueStepMs)
  const isNear =
    front === undefined || isStale || rank < Math.max(front.due + waiting.spareRanks, waiting.namedIn(front))
  return { is: isNear ? 'near' : 'in-line', lookMs: isByLot ? lotMs : lookMs, isFull: slots !== undefined }
}
