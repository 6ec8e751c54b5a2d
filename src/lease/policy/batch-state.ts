/** How the batches of a compartment begin, start over and continue. Pure. */
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
 * Other work: what is out for the work before belongs to a batch that is over, whose results are nobody's any more.
 * `startsOver`: with the first size, and without the failures and the stop of before.
 */
export function batchOfNextRollout(before: BatchState, strategy: Strategy, startsOver: boolean): BatchState {
  const epoch = before.epoch + 1
  if (startsOver) return firstBatch(strategy, epoch)
  return { ...batchWaiting(before, undefined), epoch, completed: 0, failed: 0 }
}

/** The open batch, which has waited so long for nodes that may not come; undefined = there is nobody to wait for. */
export const batchWaiting = (batch: BatchState, waitedSeconds: number | undefined): BatchState =>
  withCount(batch, 'waitedSeconds', waitedSeconds)

/** The batch, beside so many nodes that did not wait when it began; undefined = that is not known. */
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

/** The open batch under the strategy as it is now: what the policy says of the first size counts at once. */
export function batchUnder(strategy: Strategy, batch: BatchState): BatchState {
  const isInitial = strategy.kind === 'fixed' || batch.currentBatch === 1
  return isInitial && batch.size !== strategy.initialBatch ? { ...batch, size: strategy.initialBatch } : batch
}
