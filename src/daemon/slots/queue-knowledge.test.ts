import { expect, test } from 'vitest'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { type Ledger, ledgerAnnotation } from '../../lease/ledger.ts'
import { ledgerLabels, ledgerName } from '../../lease/names.ts'
import { firstBatch } from '../../lease/policy/batch-state.ts'
import { readStrategy } from '../../lease/policy/strategy.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import type { Lease } from '../../lease/slot.ts'
import type { BatchState } from '../../schemas/batch-state.ts'
import type { StrategySpec } from '../../schemas/deployment-policy.ts'
import { appliedHash } from '../../stages/model/applied-hash.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { createFleetSize } from '../state/fleet-size.ts'
import { createQueueKnowledge } from './queue-knowledge.ts'

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

/** Of 100 nodes; `batch`: beside the first one of a rollout. */
function ledgerOf(waiters: number, batch: Partial<BatchState>): Lease {
  const ledger: Ledger = {
    v: 1,
    skyhookUID: skyhook.uid,
    generation: 1,
    applied: appliedHash(spec),
    selectorHash: selectorHash(undefined),
    agents: 100,
    waiters,
    countedAt: '2026-11-20T14:00:00Z',
    policy: { uid: 'policy', generation: 1 },
    compartments: {
      __default__: {
        matched: 100,
        completed: 0,
        waiters,
        batch: { ...firstBatch(readStrategy(exponential), 1), ...batch },
      },
    },
  }
  const annotations = { [ledgerAnnotation]: JSON.stringify(ledger) }
  return { metadata: { name: ledgerName(skyhook), labels: ledgerLabels(skyhook), annotations } } as unknown as Lease
}

function knowledgeOf(view: SkyhookView, ...ledgers: Lease[]) {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const knowledge = createQueueKnowledge(view, createFleetSize(100), clock)
  knowledge.learn(ledgers)
  return { clock, knowledge }
}

test.each<[string, StrategySpec, Partial<BatchState>, { next: number; most: number } | undefined]>([
  ['exponential', exponential, { size: 4 }, { next: 8, most: 10 }],
  ['exponential, up to the budget', exponential, { size: 8 }, { next: 10, most: 10 }],
  ['exponential, cut off by the budget', exponential, { size: 16 }, { next: 10, most: 10 }],
  ['linear', { linear: { delta: 3 } }, { size: 4 }, { next: 7, most: 10 }],
  ['fixed', { fixed: { initialBatch: 4 } }, { size: 4 }, { next: 4, most: 4 }],
  ['stopped', exponential, { size: 4, stopped: true }, undefined],
])('sizes of the batches that follow: %s', (_, strategy, batch, expected) => {
  const found = knowledgeOf(viewOf(strategy), ledgerOf(100, batch)).knowledge.batches()
  expect(found && { next: found.next, most: found.most }).toEqual(expected)
})

test.each<[string, number, Partial<BatchState>, number]>([
  ['the batch has just begun', 100, { size: 4, notWaiting: 0 }, 4],
  ['three nodes have a place', 97, { size: 4, notWaiting: 0 }, 1],
  ['all places are taken', 96, { size: 4, notWaiting: 0 }, 0],
  ['nodes of earlier batches take none', 93, { size: 4, completed: 6, failed: 1, notWaiting: 7 }, 4],
  ['nodes that were complete before the rollout take none', 48, { size: 4, notWaiting: 50 }, 2],
  ['results of nodes that are gone do not count', 10, { size: 4, completed: 5_000, notWaiting: 86 }, 0],
  ['nodes that wait again leave all of them', 100, { size: 4, notWaiting: 5 }, 4],
  ['a ledger that does not say who waited when the batch began shows none', 97, { size: 4 }, 0],
  ['a batch has at most as many places as the budget', 100, { size: 16, notWaiting: 0 }, 10],
  ['a stopped rollout has none', 100, { size: 4, stopped: true, notWaiting: 0 }, 0],
])('places that nobody has taken: %s', (_, waiters, batch, free) => {
  expect(knowledgeOf(viewOf(exponential), ledgerOf(waiters, batch)).knowledge.freeInBatch()).toBe(free)
})

test('a Skyhook without a policy, or without a count, has no batches', () => {
  const { knowledge } = knowledgeOf({ ...viewOf(exponential), spec: { interruptionBudget: { count: 2 } } })
  expect([knowledge.batches(), knowledge.freeInBatch()]).toEqual([undefined, 0])
  expect(knowledgeOf(viewOf(exponential)).knowledge.batches()).toBeUndefined()
})

test('a rollout that grows is expected to be as fast as with the largest batches', async () => {
  const { clock, knowledge } = knowledgeOf(viewOf(exponential), ledgerOf(100, { size: 1 }))
  expect(knowledge.nodesPerMs()).toBe(0)
  await clock.advance(1_000)
  knowledge.learn([ledgerOf(99, { size: 1 })])
  expect(knowledge.nodesPerMs()).toBe(0)
  knowledge.learn([ledgerOf(97, { size: 4, epoch: 3, currentBatch: 3 })])
  await clock.advance(1_000)
  expect(knowledge.nodesPerMs()).toBe((2 * 10) / 2_000)
})

test.each<[string, Partial<BatchState>, Partial<BatchState>]>([
  ['begins again after a stop', { epoch: 40, currentBatch: 40, stopped: true }, { epoch: 40 }],
  ['goes on after a stop', { epoch: 40, currentBatch: 40, stopped: true }, { epoch: 40, currentBatch: 40 }],
  ['begins again', { epoch: 40, currentBatch: 40 }, { epoch: 40 }],
  ['has a new ledger whose epochs caught up', { epoch: 1 }, { epoch: 41 }],
])('a rollout that %s is not expected to be fast', async (_, before, after) => {
  const { clock, knowledge } = knowledgeOf(viewOf(exponential), ledgerOf(100, { size: 1, ...before }))
  expect(knowledge.nodesPerMs()).toBe(0)
  await clock.advance(60_000)
  knowledge.learn([ledgerOf(100, { size: 1, ...after })])
  expect(knowledge.nodesPerMs()).toBe(0)
  await clock.advance(10_000)
  const { epoch = 0, currentBatch = 1 } = after
  knowledge.learn([ledgerOf(100, { size: 1, epoch: epoch + 1, currentBatch: currentBatch + 1 })])
  expect(knowledge.nodesPerMs()).toBeLessThanOrEqual(10 / 10_000)
  expect(knowledge.nodesPerMs()).toBeGreaterThan(0)
})

test('the time of a stop does not make a rollout that goes on look slow', async () => {
  const { clock, knowledge } = knowledgeOf(viewOf(exponential), ledgerOf(100, { currentBatch: 5 }))
  knowledge.nodesPerMs()
  knowledge.learn([ledgerOf(100, { currentBatch: 5, stopped: true })])
  knowledge.nodesPerMs()
  await clock.advance(3_600_000)
  knowledge.learn([ledgerOf(100, { currentBatch: 5 })])
  expect(knowledge.nodesPerMs()).toBe(0)
  await clock.advance(10_000)
  knowledge.learn([ledgerOf(100, { currentBatch: 6 })])
  expect(knowledge.nodesPerMs()).toBe(10 / 10_000)
})

test('a stopped rollout is not expected to go on, whoever leaves the cluster', async () => {
  const { clock, knowledge } = knowledgeOf(viewOf(exponential), ledgerOf(100, { stopped: true, currentBatch: 5 }))
  knowledge.nodesPerMs()
  await clock.advance(60_000)
  knowledge.learn([ledgerOf(60, { stopped: true, currentBatch: 5 })]) // nodes were taken away
  expect(knowledge.nodesPerMs()).toBe(0)
})
