import { describe, expect, test } from 'vitest'
import type { StrategySpec } from '../../schemas/deployment-policy.ts'
import { isFailedBatch, isStopDue, nextSize, readStrategy, safetyRank } from './strategy.ts'

describe('strategies', () => {
  test('a strategy gets the defaults of the resource definition, also for null', () => {
    const defaults = { initialBatch: 1, batchThreshold: 100, safetyLimit: 50 }
    expect(readStrategy({ fixed: {} })).toEqual({ kind: 'fixed', step: 0, ...defaults })
    expect(readStrategy({ linear: { delta: null, initialBatch: null } })).toEqual({
      kind: 'linear',
      step: 1,
      ...defaults,
    })
    expect(readStrategy({ exponential: { growthFactor: 3, failureThreshold: 2 } })).toEqual({
      kind: 'exponential',
      step: 3,
      failureThreshold: 2,
      ...defaults,
    })
  })

  test('a strategy is ranked as it is written, one that is missing last', () => {
    const specs: (StrategySpec | undefined)[] = [{ fixed: {} }, { linear: {} }, { exponential: {} }, undefined]
    expect(specs.map(safetyRank)).toEqual([0, 1, 2, 3])
  })
})

describe('nextSize', () => {
  const fixed: StrategySpec = { fixed: { initialBatch: 3 } }
  const linear: StrategySpec = { linear: { initialBatch: 1, delta: 2 } }
  const exponential: StrategySpec = { exponential: { growthFactor: 2 } }

  test.each<[StrategySpec, number, { hasFailed: boolean; progressPercent: number; matched?: number }, number]>([
    [fixed, 3, { hasFailed: false, progressPercent: 10 }, 3],
    [fixed, 3, { hasFailed: true, progressPercent: 10 }, 3],
    [linear, 1, { hasFailed: false, progressPercent: 10 }, 3],
    [linear, 3, { hasFailed: true, progressPercent: 10 }, 1],
    [linear, 1, { hasFailed: true, progressPercent: 10 }, 1],
    [linear, 3, { hasFailed: true, progressPercent: 49 }, 1],
    [linear, 3, { hasFailed: true, progressPercent: 50 }, 5],
    [exponential, 4, { hasFailed: false, progressPercent: 10 }, 8],
    [exponential, 4, { hasFailed: true, progressPercent: 10 }, 2],
    [exponential, 3, { hasFailed: true, progressPercent: 10 }, 1],
    [exponential, 1, { hasFailed: true, progressPercent: 10 }, 1],
    [exponential, 8, { hasFailed: false, progressPercent: 60, matched: 10 }, 10],
    [linear, 2, { hasFailed: false, progressPercent: 60, matched: 3 }, 3],
    [fixed, 3, { hasFailed: false, progressPercent: 60, matched: 0 }, 1],
  ])(
    'with %j, the batch after one of %i nodes with %j has %i nodes',
    (spec, size, { matched = 50, ...results }, expected) => {
      expect(nextSize(readStrategy(spec), size, { ...results, matched })).toBe(expected)
    },
  )
})

test.each([
  [100, { succeeded: 3, failed: 0 }, false],
  [100, { succeeded: 99, failed: 1 }, true],
  [90, { succeeded: 9, failed: 1 }, false],
  [91, { succeeded: 9, failed: 1 }, true],
  [67, { succeeded: 2, failed: 1 }, true], // 66.7 %: rounded up it would pass
  [1, { succeeded: 0, failed: 1 }, true],
])('with a threshold of %i %, a batch of %j has failed: %s', (batchThreshold, results, expected) => {
  expect(isFailedBatch(readStrategy({ fixed: { batchThreshold } }), results)).toBe(expected)
})

test('failed batches in a row stop a rollout only where a threshold says so', () => {
  expect(isStopDue(readStrategy({ fixed: {} }), 1_000)).toBe(false)
  const strategy = readStrategy({ fixed: { failureThreshold: 2 } })
  expect([0, 1, 2, 3].map((failures) => isStopDue(strategy, failures))).toEqual([false, false, true, true])
})
