/** What the ledger says of the batches of one compartment. */
export type BatchState = {
  /** Tells batches apart, for slots. Only ever grows, also when the batches start over. */
  readonly epoch: number
  /** For people: number of the batch since the batches started over, from 1. */
  readonly currentBatch: number
  /** Nodes that the batch may have. */
  readonly size: number
  /** Results of the batches of this rollout. */
  readonly completed: number
  readonly failed: number
  readonly consecutiveFailures: number
  /** Too many batches in a row have failed: no node starts until the batches start over. */
  readonly stopped: boolean
  /** Nodes that the last batch had; 0 before the first one is over. */
  readonly lastBatchSize: number
  readonly lastBatchFailed: boolean
  /**
   * Nodes of the compartment that did not wait for a slot when the batch began, and so have no place in it. It only
   * tells those who wait how many places are left. Absent in a batch that an earlier version has begun.
   */
  readonly notWaiting?: number
  /**
   * Whole seconds for which the batch, else done, has waited for nodes that may not come. Here, and not in the memory
   * of the census, for that may be killed before it has waited long enough. No clock is compared with it.
   */
  readonly waitedSeconds?: number
}
