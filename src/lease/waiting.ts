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
  /** So many nodes have a slot free by the count, and need not see it first. */
  readonly due: number
  /** Of those and of the next ones, as far as there is room: ascending, without anything between them. */
  readonly places: string
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
const maxNamed = 510

/**
 * @param free slots that no node has, by the count
 * @param atLeast so many are named, even if fewer are due
 */
export function frontOf(nodeUids: readonly string[], free: number, atLeast = 0): Front {
  const due = Math.max(0, Math.min(free, nodeUids.length))
  const inOrder = nodeUids.map(placeKey).toSorted()
  return { due, places: inOrder.slice(0, Math.min(maxNamed, Math.max(atLeast, due + spareRanks))).join('') }
}

export const namedIn = ({ places }: Front): number => places.length / placeDigits

/** A person may have edited it. */
export function isFront(value: unknown): value is Front {
  if (!isObject(value)) return false
  const { due, places } = value
  const isCount = Number.isSafeInteger(due) && (due as number) >= 0
  return isCount && typeof places === 'string' && /^(?:[0-9a-f]{4})*$/.test(places)
}

/** Those that the front names and that come before a node of this place. */
export const placesBefore = ({ places }: Front, place: string): readonly string[] =>
  (places.match(/.{4}/g) ?? []).filter((one) => one < place)

/** How many nodes come before this one: exact within the front, about as many elsewhere. */
export function rankOf(nodeUid: string, front: Front, waiters: number): number {
  const before = placesBefore(front, placeKey(nodeUid)).length
  if (before < namedIn(front)) return before
  const end = Number.parseInt(front.places.slice(-placeDigits) || '0', 16) / 16 ** placeDigits
  const share = Math.max(0, hashFraction(nodeUid) - end) / (1 - end)
  return before + Math.floor(share * Math.max(0, waiters - before))
}

/**
 * Nodes with a lower rank are in line: two for each slot and some. Ranks are guesses: of n hashes, those below some
 * value are off by √n / 2 (one standard deviation), and three of them must not leave the line empty.
 */
export const lineLength = (limit: number, matched: number): number =>
  limit + spareRanks + Math.max(limit, Math.ceil(1.5 * Math.sqrt(matched)))

/** So many nodes are there that most of them are far from their turn. */
export const isCrowded = (nodes: number, limit: number): boolean => nodes > lineLength(limit, nodes)

/** Within this the others have seen that a node took a slot: LIST, CREATE and the event take about half of it. */
const handOverMs = 50
/** The same, as a multiple of the time of one answer, where the API server is slow. */
const handOverAnswers = 4
/** One answer may take very long, as when an API server restarts; the next ones need not. */
const maxHandOverMs = 1_000
/** Where the count has slots for many: so long that few of the CREATEs name the same one. */
export const dueStepMs = 16

/** @param answerMs how long the API server took to answer this node last */
export const handOverStepMs = (answerMs: number): number =>
  Math.min(maxHandOverMs, Math.max(handOverMs, handOverAnswers * answerMs))

/**
 * How long a node for which there may be a slot waits before it asks: as many as are free go one after the other, the
 * next ones only where those do not come. The others see within half a step that a slot is taken.
 * @param before nodes that come before this one and have no slot yet
 */
export const handOverDelayMs = (before: number, free: number, stepMs: number): number =>
  (Math.min(before, free - 1) / 2 + Math.max(0, before - free + 1)) * stepMs

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

/** For how long a node has been far from its turn, and how many nodes have stopped waiting meanwhile. */
export type Asleep = { readonly ms: number; readonly done: number }

/**
 * How long a node whose turn is far sleeps before it reads the ledger again: until it is in line, at most half of its
 * estimated wait. Before it knows how fast the others are, it expects two seconds for each. At first hardly a node is
 * done, so that they seem slow: it sleeps at most twice as long as it has been asleep.
 */
export function sleepMs(rank: number, limit: number, matched: number, { ms, done }: Asleep, random: number): number {
  const nodes = Math.min(Math.max(limit / 4, rank - lineLength(limit, matched)), rank / 2)
  const desiredMs = ms === 0 ? (nodes / limit) * fastestNodeMs : Math.min(2 * ms, (nodes / Math.max(1, done)) * ms)
  const longestMs = Math.min(maxSleepMs, Math.max(minLongestSleepMs, sleepMsPerNode * matched))
  return Math.min(longestMs, Math.max(minSleepMs, desiredMs)) * (1 - 0.2 * random)
}
