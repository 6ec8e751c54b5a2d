import { expect, test } from 'vitest'
import type { BatchState, StrategySpec } from '../../schemas/deployment-policy.ts'
import { appliedHash } from '../../stages/model/package-inputs.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { type Ledger, ledgerAnnotation, selectorHash } from '../ledger.ts'
import { ledgerLabels, ledgerName } from '../names.ts'
import { firstBatch } from '../policy/batch.ts'
import { readStrategy } from '../policy/strategy.ts'
import type { Lease } from '../slot.ts'
import { batchesOf, queueOf } from './budget.ts'

const skyhook = { name: 's', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }
const spec = { deploymentPolicy: 'careful' }
const exponential: StrategySpec = { exponential: {} }

const viewOf = (strategy: StrategySpec, budget = { count: 10 }): SkyhookView => ({
  metadata: { ...skyhook, resourceVersion: '1' },
  spec,
  budget: {},
  stale: false,
  policy: { state: 'found', uid: 'policy', generation: 1, spec: { default: { budget, strategy } } },
})

/** Of 100 nodes, 90 of which wait; `batch`: beside the first one of a rollout. */
function ledgerOf(batch: Partial<BatchState>, change: object = {}): Lease {
  const ledger: Ledger = {
    v: 1,
    skyhookUID: skyhook.uid,
    generation: 1,
    applied: appliedHash(spec),
    selectorHash: selectorHash(undefined),
    agents: 100,
    waiters: 90,
    countedAt: '2026-11-20T14:00:00Z',
    policy: { uid: 'policy', generation: 1 },
    compartments: {
      __default__: {
        matched: 100,
        completed: 0,
        waiters: 90,
        batch: { ...firstBatch(readStrategy(exponential), 1), ...batch },
      },
    },
    ...change,
  }
  const annotations = { [ledgerAnnotation]: JSON.stringify(ledger) }
  return { metadata: { name: ledgerName(skyhook), labels: ledgerLabels(skyhook), annotations } } as unknown as Lease
}

test.each<[string, StrategySpec, Partial<BatchState>, { next: number; most: number } | undefined]>([
  ['exponential', exponential, { size: 4 }, { next: 8, most: 10 }],
  ['exponential, up to the budget', exponential, { size: 8 }, { next: 10, most: 10 }],
  ['exponential, cut off by the budget', exponential, { size: 16 }, { next: 10, most: 10 }],
  ['linear', { linear: { delta: 3 } }, { size: 4 }, { next: 7, most: 10 }],
  ['fixed', { fixed: { initialBatch: 4 } }, { size: 4 }, { next: 4, most: 4 }],
  ['stopped', exponential, { size: 4, stopped: true }, undefined],
])('sizes of the batches that follow: %s', (_, strategy, batch, expected) => {
  const found = batchesOf(viewOf(strategy), [ledgerOf(batch)])
  expect(found && { next: found.next, most: found.most }).toEqual(expected)
})

test('a Skyhook without a policy, or without a count, has no batches', () => {
  const { deploymentPolicy: _, ...unbatched } = spec
  expect(batchesOf({ ...viewOf(exponential), spec: unbatched }, [ledgerOf({})])).toBeUndefined()
  expect(batchesOf(viewOf(exponential), [])).toBeUndefined()
})

test('those who wait are as many as the ledger says, if it counted this work', () => {
  expect(queueOf(viewOf(exponential), [ledgerOf({})])).toEqual({ matched: 100, waiters: 90 })
  expect(queueOf(viewOf(exponential), [ledgerOf({}, { applied: 'other' })])).toEqual({ matched: 100, waiters: 100 })
})
