/** How the batches of a compartment start, start over and continue. Pure. */
import type { BatchState } from '../../schemas/batch-state.ts'
import type { Strategy } from './strategy.ts'

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
