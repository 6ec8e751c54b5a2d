/**
 * The order of the nodes that wait for a slot, and what they watch. Pure.
 *
 * Every node has a place among the selected nodes, by the hash of its uid. Those whose turn is near are in line and
 * watch a few slots each; the others sleep and read the ledger. Nothing here grants anything or guards the budget: a
 * wrong rank costs requests or time.
 */
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'

/** From the ledger, at some point in time. */
export type Queue = {
  /** Nodes that the Skyhook selects. */
  readonly matched: number
  /** Those of them that wait for a slot. */
  readonly waiters: number
}

/** At least 0, below 1, evenly spread over all ids. */
export const hashFraction = (id: string): number => Number.parseInt(sha256Hex(id).slice(0, 12), 16) / 2 ** 48

/**
 * About how many nodes come before this one. Nodes go about in the order of their places, so that all places before the
 * first waiting node are done.
 */
export function rankOf(nodeUid: string, { matched, waiters }: Queue): number {
  const place = Math.floor(hashFraction(nodeUid) * matched)
  return Math.max(0, place - Math.max(0, matched - waiters))
}

/** A margin for few ranks: with this many more nodes, hardly any range is without a node. */
const spareRanks = 10

/**
 * Nodes with a lower rank are in line: two for each slot and some. Ranks are guesses: of n hashes, those below some
 * value are off by √n / 2 (one standard deviation), and three of them must not leave the line empty.
 */
export const lineLength = (limit: number, matched: number): number =>
  limit + spareRanks + Math.max(limit, Math.ceil(1.5 * Math.sqrt(matched)))

/** Whether there are so many nodes that most of them are far from their turn. */
export const isCrowded = (nodes: number, limit: number): boolean => nodes > lineLength(limit, nodes)

/** How many nodes in line watch a slot: few enough to keep events rare, enough that nearly every slot has a watcher. */
const watchersPerSlot = 8
/** A node that watches fewer slots sees no free one while these are held for long. */
const minWatched = 4
/** Up to this many slots are all watched: with a short line, some slots would soon have no watcher. */
const fewSlots = 16

/**
 * Which slots a node in line watches: of many, a few chosen by its uid. Two nodes seldom share more than one, so that
 * no group of slots runs out of watchers while others have some.
 * @param rivals nodes in line
 */
export function watchedIndices(nodeUid: string, limit: number, rivals: number): readonly number[] | 'all' {
  const desired = Math.max(minWatched, (watchersPerSlot * limit) / Math.max(1, rivals))
  const count = 2 ** Math.ceil(Math.log2(desired)) // changes seldom: each change opens a watch
  if (limit <= fewSlots || 2 * count > limit) return 'all'
  const picked = Array.from({ length: count }, (_, at) => Math.floor(hashFraction(`${nodeUid}/${at}`) * limit))
  return [...new Set(picked)].toSorted((a, b) => a - b)
}

/** Within this the others have seen that a node took a slot: LIST, CREATE and the event take about half of it. */
const handOverMs = 40
/** The same, as a multiple of the time of one answer, where the API server is slow. */
const handOverAnswers = 4
/** One answer may take very long, as when an API server restarts; the next ones need not. */
const maxHandOverMs = 1_000

/** Where many slots are free at once, this much for each: about as fast as an API server can LIST them. */
const msPerFree = 8

/** @param answerMs how long the API server took to answer this node last */
export const handOverStepMs = (answerMs: number): number =>
  Math.min(maxHandOverMs, Math.max(handOverMs, handOverAnswers * answerMs))

/**
 * How long a node that sees free slots waits before it asks: nodes that see the same slot draw a random delay, about
 * one node for each step. A node that sees the slot taken meanwhile does not ask.
 * @param watchers nodes for each free slot
 * @param free slots in all, about
 * @param random at least 0, below 1
 */
export const handOverDelayMs = (watchers: number, free: number, stepMs: number, random: number): number =>
  Math.max(stepMs * Math.max(1, watchers), msPerFree * free) * random

/** Another node was faster, or the slot was not free. */
const lostBackoff: Backoff = { initialMs: 200, maxMs: 30_000, jitter: 0.5 }

/** @param losses in a row, at least 1 */
export const lostDelayMs = (losses: number, random: number): number => backoffMs(losses, lostBackoff, random)

const minSleepMs = 1_000
const maxSleepMs = 600_000
/** In a small fleet, even if the others were slow: they may be faster from now on. */
const minLongestSleepMs = 30_000
/** Without progress: all sleeping nodes together read the ledger at most four times a second. */
const sleepMsPerNode = 250
/** Work that takes less time hardly needs a budget. */
const fastestNodeMs = 2_000

/** For how long a node has been far from its turn, and how many nodes have stopped waiting meanwhile. */
export type Asleep = { readonly ms: number; readonly done: number }

/**
 * How long a node whose turn is far sleeps before it reads the ledger again: until it is in line, at most half of its
 * estimated wait. Before it knows how fast the others are, it expects two seconds for each. At first hardly any node is
 * done, so that all seem slow: a node sleeps at most twice as long as it has slept so far.
 */
export function sleepMs(rank: number, limit: number, matched: number, { ms, done }: Asleep, random: number): number {
  const nodes = Math.min(Math.max(limit / 4, rank - lineLength(limit, matched)), rank / 2)
  const desiredMs = ms === 0 ? (nodes / limit) * fastestNodeMs : Math.min(2 * ms, (nodes / Math.max(1, done)) * ms)
  const longestMs = Math.min(maxSleepMs, Math.max(minLongestSleepMs, sleepMsPerNode * matched))
  return Math.min(longestMs, Math.max(minSleepMs, desiredMs)) * (1 - 0.2 * random)
}
