/** How large the next batch of a compartment is. Pure. */
import type { StrategyNumbers, StrategySpec } from '../../schemas/deployment-policy.ts'

export type Strategy = {
  readonly kind: 'fixed' | 'linear' | 'exponential'
  readonly initialBatch: number
  /** Percent of a batch's nodes that have to succeed, or the batch has failed. */
  readonly batchThreshold: number
  /** Failed batches in a row that stop the rollout; absent = nothing stops it. */
  readonly failureThreshold?: number
  /** Progress in percent from which a failed batch does not make the next one smaller. */
  readonly safetyLimit: number
  /** Delta or growth factor. */
  readonly step: number
}

/** The strategy with the defaults of the CRD, which an explicit `null` gets as well. */
export function readStrategy({ fixed, linear, exponential }: StrategySpec): Strategy {
  if (exponential) return { ...numbersOf(exponential), kind: 'exponential', step: exponential.growthFactor ?? 2 }
  if (linear) return { ...numbersOf(linear), kind: 'linear', step: linear.delta ?? 1 }
  return { ...numbersOf(fixed ?? {}), kind: 'fixed', step: 0 }
}

function numbersOf(numbers: StrategyNumbers): Omit<Strategy, 'kind' | 'step'> {
  const { initialBatch, batchThreshold, failureThreshold, safetyLimit } = numbers
  return {
    initialBatch: initialBatch ?? 1,
    batchThreshold: batchThreshold ?? 100,
    ...(typeof failureThreshold === 'number' && { failureThreshold }),
    safetyLimit: safetyLimit ?? 50,
  }
}

/** The safest first, by the strategy in the spec: a compartment without one comes last. */
export function safetyRank(strategy: StrategySpec | undefined): number {
  if (strategy?.fixed) return 0
  if (strategy?.linear) return 1
  return strategy?.exponential ? 2 : 3
}

/** Results of a batch. */
export type BatchResults = { readonly succeeded: number; readonly failed: number }

/** Whether so few nodes succeeded that the batch has failed, in integers. */
export const isFailedBatch = ({ batchThreshold }: Strategy, { succeeded, failed }: BatchResults): boolean =>
  succeeded * 100 < batchThreshold * (succeeded + failed)

/** Whether so many failed batches in a row stop the rollout, at any progress. */
export const isStopDue = ({ failureThreshold = Infinity }: Strategy, consecutiveFailures: number): boolean =>
  consecutiveFailures >= failureThreshold

/**
 * Size of the batch after one of this size. A failed batch makes it smaller while the rollout has not reached the
 * safety limit; at least 1 and at most `matched`.
 */
export function nextSize(
  strategy: Strategy,
  size: number,
  { hasFailed, progressPercent, matched }: { hasFailed: boolean; progressPercent: number; matched: number },
): number {
  const { kind, step, initialBatch, safetyLimit } = strategy
  const shrinks = hasFailed && progressPercent < safetyLimit
  const next = ((): number => {
    switch (kind) {
      case 'fixed':
        return initialBatch
      case 'linear':
        return shrinks ? size - step : size + step
      case 'exponential':
        return shrinks ? Math.floor(size / step) : size * step
    }
  })()
  return Math.max(1, Math.min(next, matched))
}
