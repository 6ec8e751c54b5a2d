/**
 * How a node waits for a slot among many others. Pure.
 *
 * Every node has a place among the selected nodes, by the hash of its uid. Those whose turn is near watch one held slot
 * each; the others sleep and read the ledger. Nothing here grants anything or guards the budget: a wrong rank costs
 * requests or time.
 */
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'

/** As the ledger says, at some moment. */
export type Queue = {
  /** Nodes that the Skyhook selects. */
  readonly matched: number
  /** Those of them that wait for a slot. */
  readonly waiters: number
}

/** At least 0, below 1, evenly spread over all ids. */
export const hashFraction = (id: string): number => Number.parseInt(sha256Hex(id).slice(0, 12), 16) / 2 ** 48

/** Where the node stands among the selected ones, from 0. It stays while the number of selected nodes stays. */
export const placeOf = (nodeUid: string, { matched }: Queue): number => Math.floor(hashFraction(nodeUid) * matched)

/**
 * About how many nodes come before this one. Nodes go about in the order of their places, so that all places before the
 * first waiting one are done.
 */
export function rankOf(nodeUid: string, queue: Queue): number {
  const notWaiting = Math.max(0, queue.matched - queue.waiters)
  return Math.max(0, placeOf(nodeUid, queue) - notWaiting)
}

/** Of few ranks, so many more leave hardly any range without a node. */
const spareRanks = 10

/**
 * Nodes with a lower rank are next: two for each slot and some. Ranks are guesses: of n hashes, those below some value
 * are off by √n / 2 (one standard deviation), and three of them must not leave the line empty.
 */
export const lineLength = (limit: number, { matched }: Queue): number =>
  limit + spareRanks + Math.max(limit, Math.ceil(1.5 * Math.sqrt(matched)))

/**
 * Whether the node is one of those for whom so many free slots are. With those who are there by a wrong guess, because
 * few of them may wait.
 */
export const isAmongNext = (nodeUid: string, slots: number, queue: Queue): boolean =>
  rankOf(nodeUid, queue) < slots + spareRanks

/** Whether the node's turn is near enough to watch a slot, or to make ready for it. */
export const isNextInLine = (nodeUid: string, limit: number, queue: Queue): boolean =>
  rankOf(nodeUid, queue) < lineLength(limit, queue)

/**
 * Spread of the requests after a slot was released, per node that watches it. Until the others see who was first, some
 * 20 ms, one of them asks in vain.
 */
const spreadMsPerWatcher = 25
/** Within this a node has seen that another one took the slot: LIST, CREATE and the event take about half of it. */
const handOverMs = 50
/** The same, as a multiple of the time of one answer, where the API server is slow. */
const handOverAnswers = 4
/** One answer may take very long, as when an API server restarts; the next ones need not. */
const maxHandOverMs = 1_000

/**
 * How long to wait before asking for a slot that was released. Where ranks are certain enough, first those who come
 * first; else all at random, so that the soonest of them is soon.
 * @param random at least 0, below 1
 * @param answerMs how long the API server took to answer this node
 */
export function handOverDelayMs(nodeUid: string, limit: number, queue: Queue, random: number, answerMs = 0): number {
  const watchers = Math.max(1, Math.min(lineLength(limit, queue), queue.waiters) / limit)
  const areRanksCertain = limit >= Math.sqrt(queue.matched)
  if (!areRanksCertain || watchers <= 1) return spreadMsPerWatcher * watchers * random
  const round = Math.min(Math.floor(rankOf(nodeUid, queue) / limit), Math.ceil(watchers))
  return Math.min(maxHandOverMs, Math.max(handOverMs, handOverAnswers * answerMs)) * (round + random)
}

/** At most so many nodes in line ask for other slots for each slot that is taken: the slots in use double at least. */
const askersPerTaken = 1.5

/**
 * How likely a node in line asks for one of the slots that were free when the one that it watches was taken. Those who
 * watched them have slots by now, so that nobody else sees that they are free. Until all held slots were passed on,
 * about as many nodes ask as slots are free.
 */
export function otherSlotsShare(free: number, limit: number, queue: Queue): number {
  const held = Math.max(1, limit - free)
  return Math.min(free, askersPerTaken * held) / lineLength(limit, queue)
}

/** Whether the node is one of those who take the first slots, if all selected nodes want one at once. */
export const isAmongFirst = (nodeUid: string, limit: number, queue: Queue): boolean => placeOf(nodeUid, queue) < limit

/** Within this the others see that those have taken them; else they ask all the same. */
export const firstDelayMs = (random: number): number => 2 * handOverMs * (1 + random)

/** The slot was released and another node was faster. */
const lostBackoff: Backoff = { initialMs: 200, maxMs: 30_000, jitter: 0.5 }

/** @param losses in a row, at least 1 */
export const lostDelayMs = (losses: number, random: number): number => backoffMs(losses, lostBackoff, random)

/** Of two looks at all slots by one node, at least; a free slot is not to be idle for a minute. */
const minLookMs = 30_000
const maxLookMs = 300_000
const lookMsPerWaiter = 1_000

/**
 * When a node that watches looks at all slots, in case one is free that nobody else sees: all those in line together
 * about once a second, each of them every 30 s or less often. Where there is one slot, all of them watch it: there they
 * look less often the longer it lasts.
 *
 * Elsewhere looks must not become rare. Slots that are passed on soon use up those who watch them, and those who are
 * left watch the slots that are held for long: only a look shows them the others.
 * @param looks so far without a grant
 */
export function lookDelayMs(looks: number, limit: number, queue: Queue, random: number): number {
  const line = Math.min(lineLength(limit, queue), queue.waiters)
  const firstMs = Math.max(minLookMs, lookMsPerWaiter * line)
  const growth = limit === 1 ? 2 ** Math.min(looks, 10) : 1
  return Math.min(maxLookMs, firstMs * growth) * (1 + random / 2)
}

const minSleepMs = 1_000
const maxSleepMs = 600_000
/** Without progress: those who sleep read the ledger together at most four times a second. */
const sleepMsPerNode = 250
/** Work that is done sooner hardly needs a budget. */
const fastestNodeMs = 1_000

/** What a node that sleeps has seen of the ledger. */
export type Progress = {
  /** Nodes that stopped waiting, per ms, between two reads of the ledger; 0 before there are two. */
  readonly nodesPerMs: number
  /** The last sleep; 0 before the first. */
  readonly lastSleepMs: number
}

/**
 * How long a node whose turn is far sleeps before it reads the ledger again: until it is next in line, at most half of
 * its estimated wait. Before it knows how fast the others are, it expects a second for each; without progress it sleeps
 * twice as long as last time. At first hardly a node is done, so that the speed seems low: it sleeps at most three
 * times as long as last time. However slow the others were, they may be fast from now on: so it sleeps no longer than
 * the line lasts, which is sooner in a small fleet.
 */
export function sleepMs(
  nodeUid: string,
  limit: number,
  queue: Queue,
  { nodesPerMs, lastSleepMs }: Progress,
  random: number,
): number {
  const rank = rankOf(nodeUid, queue)
  const beforeLine = Math.max(limit / 4, rank - lineLength(limit, queue))
  const nodes = Math.min(beforeLine, rank / 2)
  const guessMs = lastSleepMs === 0 ? (nodes / limit) * fastestNodeMs : 2 * lastSleepMs
  const desiredMs = nodesPerMs > 0 ? Math.min(nodes / nodesPerMs, 3 * (lastSleepMs || guessMs)) : guessMs
  const longestMs = Math.min(maxSleepMs, Math.max(minLookMs, sleepMsPerNode * queue.matched))
  return Math.min(longestMs, Math.max(minSleepMs, desiredMs)) * (1 - 0.2 * random)
}
