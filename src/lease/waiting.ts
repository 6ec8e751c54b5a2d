/**
 * Who comes first among the nodes that wait for a slot. Pure.
 *
 * Nodes go in the order of their places, which are the hashes of their uids. The ledger names the places of those that
 * come next; beyond them a rank is an estimate. Nothing here grants anything or guards the budget: a wrong rank costs
 * requests or time.
 */
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'
import { isObject } from '../schemas/json.ts'

/** The first nodes that wait, as the ledger names them. */
export type Front = {
  /** So many of them have a slot free by the count, and need not see it first. */
  readonly due: number
  /** Their places, ascending. */
  readonly places: readonly string[]
}

/** As the ledger says, at some moment. */
export type Queue = {
  /** Nodes that the Skyhook selects. */
  readonly matched: number
  /** Those of them that wait for a slot. */
  readonly waiters: number
  /** Absent where the count is of other work, or by a census that names nobody. */
  readonly front?: Front
}

/** At least 0, below 1, evenly spread over all ids. */
export const hashFraction = (id: string): number => Number.parseInt(sha256Hex(id).slice(0, 12), 16) / 2 ** 48

const placeDigits = 4
/** The node's place among all nodes, as the front has it. Two nodes of a large fleet may share one. */
export const placeKey = (nodeUid: string): string => sha256Hex(nodeUid).slice(0, placeDigits)

/** So many nodes that wait see a freed slot at once. Of few ranks, so many more leave hardly any range without a node. */
export const spareRanks = 10
/** The ledger is read with each request: its front is at most 2 KiB. */
const maxDue = 500

/** @param free slots that no node has, by the count */
export function frontOf(nodeUids: readonly string[], free: number): Front {
  const due = Math.max(0, Math.min(free, maxDue, nodeUids.length))
  return {
    due,
    places: nodeUids
      .map(placeKey)
      .toSorted()
      .slice(0, due + spareRanks),
  }
}

/** As the ledger has it: the places without anything between them. */
export type WrittenFront = { readonly due: number; readonly places: string }

export const writeFront = ({ due, places }: Front): WrittenFront => ({ due, places: places.join('') })

/** Undefined where it is no front: a person may have edited it. */
export function readFront(value: unknown): Front | undefined {
  if (!isObject(value)) return undefined
  const { due, places } = value
  if (
    !Number.isSafeInteger(due) ||
    (due as number) < 0 ||
    typeof places !== 'string' ||
    !/^(?:[0-9a-f]{4})*$/.test(places)
  )
    return undefined
  return { due: due as number, places: places.match(/.{4}/g) ?? [] }
}

/** Where the node stands among the selected ones, from 0. It stays while the number of selected nodes stays. */
const placeOf = (nodeUid: string, matched: number): number => Math.floor(hashFraction(nodeUid) * matched)

/** How many nodes come before this one: exact within the front, about as many elsewhere. */
export function rankOf(nodeUid: string, { matched, waiters, front }: Queue): number {
  // all places before the first waiting node are done
  if (front === undefined) return Math.max(0, placeOf(nodeUid, matched) - Math.max(0, matched - waiters))
  const place = placeKey(nodeUid)
  const before = front.places.filter((one) => one < place).length
  if (before < front.places.length) return before
  const end = Number.parseInt(front.places.at(-1) ?? '0', 16) / 16 ** placeDigits
  const share = Math.max(0, hashFraction(nodeUid) - end) / (1 - end)
  return before + Math.floor(share * Math.max(0, waiters - before))
}

/**
 * Nodes with a lower rank are in line: two for each slot and some. Ranks are guesses: of n hashes, those below some
 * value are off by √n / 2 (one standard deviation), and three of them must not leave the line empty.
 */
export const lineLength = (limit: number, matched: number): number =>
  limit + spareRanks + Math.max(limit, Math.ceil(1.5 * Math.sqrt(matched)))

/** Whether the node is one of those who take the first slots, if all selected nodes want one at once. */
export const isAmongFirst = (nodeUid: string, limit: number, matched: number): boolean =>
  placeOf(nodeUid, matched) < limit

/** Within this the others have seen that a node took a slot: LIST, CREATE and the event take about half of it. */
const handOverMs = 50
/** The same, as a multiple of the time of one answer, where the API server is slow. */
const handOverAnswers = 4
/** One answer may take very long, as when an API server restarts; the next ones need not. */
const maxHandOverMs = 1_000
/** Where nobody knows who comes first, of so many ms for each node that sees the slot, about one other asks in vain. */
const spreadMsPerWatcher = 25

/** @param answerMs how long the API server took to answer this node last */
export const handOverStepMs = (answerMs: number): number =>
  Math.min(maxHandOverMs, Math.max(handOverMs, handOverAnswers * answerMs))

/**
 * How long a node that sees free slots waits before it asks for one: as many as are free go one after the other, the
 * next ones only where those do not come. The others see within half a step that a slot is taken.
 * @param rank nodes that come before this one and have no slot yet
 */
export const handOverDelayMs = (rank: number, free: number, stepMs: number): number =>
  (Math.min(rank, free - 1) / 2 + Math.max(0, rank - free + 1)) * stepMs

/** The same where nobody knows who comes first: the soonest is soon. @param random at least 0, below 1 */
export const lotDelayMs = (watchers: number, free: number, random: number): number =>
  spreadMsPerWatcher * Math.max(1, watchers / free) * random

/** Of slots that the count says are free: so long that few of the CREATEs name the same one. */
const dueMsPerNode = 8

/** @param random at least 0, below 1 */
export const dueDelayMs = (due: number, random: number): number => dueMsPerNode * due * random

/** Another node was faster, or the slot was not free. */
const lostBackoff: Backoff = { initialMs: 200, maxMs: 30_000, jitter: 0.5 }

/** @param losses in a row, at least 1 */
export const lostDelayMs = (losses: number, random: number): number => backoffMs(losses, lostBackoff, random)

const minSleepMs = 1_000
const maxSleepMs = 600_000
/** In a small fleet, however slow the others were: they may be fast from now on. */
const minLongestSleepMs = 30_000
/** Without progress: those who sleep read the ledger together at most four times a second. */
const sleepMsPerNode = 250
/** Work that is done sooner hardly needs a budget. */
const fastestNodeMs = 2_000

/** What a node that sleeps has seen of the ledger. */
export type Progress = {
  /** Nodes that stopped waiting, per ms, during the last sleep. */
  readonly nodesPerMs: number
  /** The last sleep; 0 before the first. */
  readonly lastSleepMs: number
}

/**
 * How long a node whose turn is far sleeps before it reads the ledger again: until it is in line, at most half of its
 * estimated wait. Before it knows how fast the others are, it expects two seconds for each; without progress it sleeps
 * twice as long as last time. At first hardly a node is done, so that the speed seems low: it sleeps at most three
 * times as long as last time.
 */
export function sleepMs(
  rank: number,
  limit: number,
  matched: number,
  { nodesPerMs, lastSleepMs }: Progress,
  random: number,
): number {
  const beforeLine = Math.max(limit / 4, rank - lineLength(limit, matched))
  const nodes = Math.min(beforeLine, rank / 2)
  const guessMs = lastSleepMs === 0 ? (nodes / limit) * fastestNodeMs : 2 * lastSleepMs
  const desiredMs = nodesPerMs > 0 ? Math.min(nodes / nodesPerMs, 3 * (lastSleepMs || guessMs)) : guessMs
  const longestMs = Math.min(maxSleepMs, Math.max(minLongestSleepMs, sleepMsPerNode * matched))
  return Math.min(longestMs, Math.max(minSleepMs, desiredMs)) * (1 - 0.2 * random)
}
