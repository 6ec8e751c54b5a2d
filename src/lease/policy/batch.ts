/**
 * When a batch is over, by one consistent LIST of the ledger and the slots, and how many nodes it may have. Pure.
 *
 * A slot carries the epoch of the ledger that admitted it. A node that is done keeps its slot, in the phase `finished`,
 * until the ledger's epoch has passed its own. So the slots of an epoch are its nodes, all of them, and their phases
 * are its results.
 */
import type { BatchState } from '../../schemas/deployment-policy.ts'
import type { Scope } from '../names.ts'
import { countsTowards, type Slot } from '../slot.ts'
import { type BatchResults, isFailedBatch, isStopDue, nextSize, type Strategy } from './strategy.ts'

export type OpenBatch = {
  readonly batch: BatchState
  readonly scope: Scope
  /** From one LIST with the ledger that has `batch`. */
  readonly slots: readonly Slot[]
  /** By the budget of the compartment. */
  readonly ceiling: number
}

const isFailed = ({ phase }: Slot): boolean => phase === 'failed'
const hasEnded = (slot: Slot): boolean => isFailed(slot) || slot.phase === 'finished'

const isOfScope = ({ scope }: OpenBatch, slot: Slot): boolean => slot.scope === scope.hash && slot.kind !== 'bootstrap'

/** An epoch later than the ledger's comes from a deleted ledger: its slots belong to the currently open batch. */
const isOfEpoch = (open: OpenBatch, slot: Slot): boolean =>
  isOfScope(open, slot) && slot.epoch !== undefined && slot.epoch >= open.batch.epoch

/**
 * How many nodes may hold a slot of the compartment at once. Slots that failed in earlier batches take no place in this
 * one, as long as the ceiling has room for them.
 */
export function batchLimit(open: OpenBatch): number {
  const { batch, ceiling } = open
  return batch.stopped ? 0 : Math.min(ceiling, batch.size + failedBefore(open))
}

/** Counts nodes, not slots: a node that lost its slot at work may have two. */
function failedBefore(open: OpenBatch): number {
  const failed = open.slots.filter(
    (slot) => countsTowards(slot, open.scope) && isFailed(slot) && !isOfEpoch(open, slot),
  )
  return new Set(failed.map(({ holder, uid }) => (holder === '' ? uid : holder))).size
}

export type BatchVerdict =
  | { readonly verdict: 'open' }
  | { readonly verdict: 'over'; readonly next: BatchState; readonly failedNodes: readonly string[] }

/**
 * Whether the batch is over: none of its nodes is at work, at least one is done, and no other one can join it. A slot
 * without an epoch belongs to a node that had lost its slot at work: the batch waits for it, and its result does not
 * count.
 *
 * `matched`: nodes of the compartment. `isNobodyWaiting`: none of them could ask for a slot now.
 */
export function judgeBatch(
  open: OpenBatch,
  { strategy, matched, isNobodyWaiting }: { strategy: Strategy; matched: number; isNobodyWaiting: boolean },
): BatchVerdict {
  const { batch, slots } = open
  const isAtWork = (slot: Slot): boolean =>
    !hasEnded(slot) && (isOfEpoch(open, slot) || (isOfScope(open, slot) && slot.epoch === undefined))
  const ended = slots.filter((slot) => isOfEpoch(open, slot) && hasEnded(slot))
  if (ended.length === 0 || slots.some(isAtWork)) return { verdict: 'open' }
  // not "no slot is free": one of an earlier batch may be released before the next epoch is written
  const isFull = ended.length >= batchLimit(open) - failedBefore(open)
  if (!isFull && !isNobodyWaiting) return { verdict: 'open' }

  const failedSlots = ended.filter(isFailed)
  const results = { succeeded: ended.length - failedSlots.length, failed: failedSlots.length }
  const epoch = Math.max(batch.epoch, ...ended.map((slot) => slot.epoch ?? 0))
  const next = batchAfter({ ...open, batch: { ...batch, epoch } }, strategy, results, matched)
  return { verdict: 'over', next, failedNodes: failedSlots.map(({ holder }) => holder).toSorted() }
}

function batchAfter(open: OpenBatch, strategy: Strategy, results: BatchResults, matched: number): BatchState {
  const { batch, ceiling } = open
  const nodes = results.succeeded + results.failed
  const completed = batch.completed + results.succeeded
  const failed = batch.failed + results.failed
  const hasFailed = isFailedBatch(strategy, results)
  const consecutiveFailures = hasFailed ? batch.consecutiveFailures + 1 : 0
  const progressPercent = Math.floor(((completed + failed) * 100) / Math.max(1, matched))
  // nodes beyond the ceiling were not part of the batch: growth starts from its real size
  const size = Math.max(1, Math.min(batch.size, ceiling))
  return {
    epoch: batch.epoch + 1,
    currentBatch: batch.currentBatch + 1,
    size: nextSize(strategy, size, { hasFailed, progressPercent, matched }),
    completed,
    failed,
    consecutiveFailures,
    stopped: isStopDue(strategy, consecutiveFailures),
    lastBatchSize: nodes,
    lastBatchFailed: hasFailed,
  }
}

/** How the batches of a compartment start, start over and continue. Pure. */

/** The first batch. */
export const firstBatch = ({ initialBatch }: Strategy, epoch: number): BatchState => ({
  epoch,
  currentBatch: 1,
  size: initialBatch,
  completed: 0,
  failed: 0,
  consecutiveFailures: 0,
  stopped: false,
  lastBatchSize: 0,
  lastBatchFailed: false,
})

/**
 * Other work: nodes that are out for the previous work belong to a batch that is over, and their results no longer
 * count. `startsOver`: with the first size, and without the previous failures and stop.
 */
export function batchOfNextRollout(before: BatchState, strategy: Strategy, startsOver: boolean): BatchState {
  const epoch = before.epoch + 1
  if (startsOver) return firstBatch(strategy, epoch)
  return { ...batchWaiting(before, undefined), epoch, completed: 0, failed: 0 }
}

/**
 * The open batch, which has waited this long for nodes that may not come; undefined = there are no nodes to wait for.
 */
export const batchWaiting = (batch: BatchState, waitedSeconds: number | undefined): BatchState =>
  withCount(batch, 'waitedSeconds', waitedSeconds)

/** The batch, with this many nodes that did not wait when it started; undefined = their number is not known. */
export const batchBeside = (batch: BatchState, notWaiting: number | undefined): BatchState =>
  withCount(batch, 'notWaiting', notWaiting)

function withCount(batch: BatchState, key: 'waitedSeconds' | 'notWaiting', count: number | undefined): BatchState {
  if (batch[key] === count) return batch
  const next: { -readonly [Key in keyof BatchState]: BatchState[Key] } = { ...batch }
  if (count === undefined) delete next[key]
  else next[key] = count
  return next
}

/** All nodes are complete. The results of the rollout stay: they are its history. */
export function batchAfterCompletion(before: BatchState, strategy: Strategy): BatchState {
  const { epoch, completed, failed } = before
  return { ...firstBatch(strategy, epoch), completed, failed }
}

/** The open batch under the current strategy: a change of the first size counts at once. */
export function batchUnder(strategy: Strategy, batch: BatchState): BatchState {
  const isInitial = strategy.kind === 'fixed' || batch.currentBatch === 1
  return isInitial && batch.size !== strategy.initialBatch ? { ...batch, size: strategy.initialBatch } : batch
}
