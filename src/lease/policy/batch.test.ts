import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { listedSlot } from '../../../test/kit/slots/listed-slot.ts'
import type { StrategySpec } from '../../schemas/deployment-policy.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { skyhookScope } from '../names.ts'
import type { Slot } from '../slot.ts'
import { admissibleIndices } from '../rule.ts'
import {
  batchAfterCompletion,
  batchLimit,
  batchOfNextRollout,
  batchUnder,
  firstBatch,
  judgeBatch,
  type OpenBatch,
} from './batch.ts'
import { readStrategy } from './strategy.ts'

const scope = skyhookScope({ name: 'web', uid: 'uid-web' }, 'prod')
const other = skyhookScope({ name: 'web', uid: 'uid-web' }, '')

const slotOf = (index: number | 'recovery', phase: SlotPhase, epoch?: number, ofScope = scope): Slot => {
  const node = { name: `n${index}`, uid: `u${index}`, bootId: '' }
  const target = index === 'recovery' ? ({ kind: 'recovery' } as const) : { index }
  return listedSlot(ofScope, target, node, { phase, epoch }, { uid: `s${index}` })
}

const linear = readStrategy({ linear: { initialBatch: 2, failureThreshold: 2 } })
const open = (slots: readonly Slot[], rest: Partial<OpenBatch['batch']> = {}, ceiling = 10): OpenBatch => ({
  batch: { ...firstBatch(linear, 5), ...rest },
  scope,
  slots,
  ceiling,
})
const judged = (batch: OpenBatch, isNobodyWaiting = false) =>
  judgeBatch(batch, { strategy: linear, matched: 20, isNobodyWaiting })

describe('batchLimit', () => {
  test.each<[string, OpenBatch, number]>([
    ['the size of the batch', open([]), 2],
    ['the ceiling if that is smaller', open([], {}, 1), 1],
    ['more by those that failed in earlier batches', open([slotOf(0, 'failed', 4)]), 3],
    ['no more for those that failed in this one', open([slotOf(0, 'failed', 5)]), 2],
    ['no more for those of earlier batches that are at work again', open([slotOf(0, 'working', 4)]), 2],
    ['more by a failed one that had lost its slot', open([slotOf('recovery', 'failed')]), 3],
    ['more by a failed one of a compartment that is gone', open([slotOf(0, 'failed', 7, other)]), 3],
    [
      'the ceiling at most',
      open(
        [0, 1, 2].map((index) => slotOf(index, 'failed', 4)),
        {},
        3,
      ),
      3,
    ],
    ['0 once the rollout was stopped', open([], { stopped: true }), 0],
  ])('a batch may have %s', (_, batch, expected) => {
    expect(batchLimit(batch)).toBe(expected)
  })
})

describe('judgeBatch', () => {
  const done = [slotOf(0, 'finished', 5), slotOf(1, 'finished', 5)]
  test.each<[string, OpenBatch, boolean?]>([
    ['without any node', open([]), true],
    ['with a node at work', open([slotOf(0, 'finished', 5), slotOf(1, 'working', 5)]), true],
    ['with a node that soaks', open([slotOf(0, 'finished', 5), slotOf(1, 'soaking', 5)]), true],
    ['with fewer nodes than it may have, while others wait', open([slotOf(0, 'finished', 5)])],
    ['with fewer nodes, while an earlier one takes a place', open([slotOf(0, 'finished', 5), slotOf(1, 'working', 4)])],
    ['with fewer nodes, before an earlier one is released', open([slotOf(0, 'finished', 5), slotOf(1, 'finished', 4)])],
    ['with results of an earlier one alone', open([slotOf(0, 'finished', 4), slotOf(1, 'failed', 3)]), true],
    ['beside a node that lost its slot at work', open([...done, slotOf('recovery', 'working')]), true],
  ])('a batch %s is open', (_, batch, isNobodyWaiting = false) => {
    expect(judged(batch, isNobodyWaiting)).toEqual({ verdict: 'open' })
  })

  test.each<[string, OpenBatch, boolean?]>([
    ['whose nodes are all done', open(done)],
    ['with fewer nodes, when nobody waits', open([slotOf(0, 'finished', 5)]), true],
    ['with fewer nodes, when others fill the ceiling', open([slotOf(0, 'finished', 5), slotOf(1, 'failed', 4)], {}, 2)],
    ['beside one of an earlier batch that is at work again', open([...done, slotOf(2, 'working', 3)])],
    ['of an epoch that the ledger has forgotten', open([slotOf(0, 'finished', 9), slotOf(1, 'finished', 9)])],
  ])('a batch %s is over', (_, batch, isNobodyWaiting = false) => {
    expect(judged(batch, isNobodyWaiting)).toMatchObject({ verdict: 'over' })
  })

  test('a batch counts its own results, once, and the next one is larger', () => {
    const slots = [...done, slotOf(2, 'failed', 4), slotOf(3, 'finished', 4)]
    expect(judged(open(slots, { completed: 3, failed: 1 }))).toEqual({
      verdict: 'over',
      failedNodes: [],
      next: {
        epoch: 6,
        currentBatch: 2,
        size: 3,
        completed: 5,
        failed: 1,
        consecutiveFailures: 0,
        stopped: false,
        lastBatchSize: 2,
        lastBatchFailed: false,
      },
    })
  })

  test('a failed batch makes the next one smaller, and the second in a row stops the rollout', () => {
    const slots = [slotOf(0, 'finished', 5), slotOf(1, 'failed', 5)]
    const first = judged(open(slots))
    expect(first).toMatchObject({
      verdict: 'over',
      failedNodes: ['n1'],
      next: { size: 1, consecutiveFailures: 1, stopped: false, lastBatchFailed: true },
    })
    expect(judged(open(slots, { consecutiveFailures: 1, completed: 19 }))).toMatchObject({
      next: { consecutiveFailures: 2, stopped: true, size: 3 }, // above the safety limit it grows all the same
    })
  })

  test('a batch that the ceiling cut off grows from what was left of it', () => {
    expect(judged(open([slotOf(0, 'finished', 5)], { size: 8 }, 1))).toMatchObject({ next: { size: 2 } })
  })
})

describe('batch states', () => {
  const late = { ...firstBatch(linear, 9), currentBatch: 4, size: 5, completed: 7, failed: 2, stopped: true }

  test('batches continue with the next rollout, or start over', () => {
    expect(batchOfNextRollout(late, linear, false)).toEqual({ ...late, epoch: 10, completed: 0, failed: 0 })
    expect(batchOfNextRollout(late, linear, true)).toEqual(firstBatch(linear, 10))
  })

  test('batches that start over after completion keep their results', () => {
    expect(batchAfterCompletion(late, linear)).toEqual({ ...firstBatch(linear, 9), completed: 7, failed: 2 })
  })

  test('a new first size counts at once, and a fixed size always', () => {
    const wider = readStrategy({ linear: { initialBatch: 4 } })
    expect(batchUnder(wider, firstBatch(linear, 1)).size).toBe(4)
    expect(batchUnder(wider, late)).toBe(late)
    expect(batchUnder(readStrategy({ fixed: { initialBatch: 3 } }), late).size).toBe(3)
  })
})

const strategies: StrategySpec[] = [
  { fixed: { initialBatch: 3 } },
  { linear: { initialBatch: 2, delta: 2, failureThreshold: 3 } },
  { exponential: { growthFactor: 3, batchThreshold: 60 } },
]

test('no sequence of epochs exceeds the ceiling', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...strategies),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.record({ what: fc.constantFrom('take', 'end', 'fail', 'retry'), which: fc.nat(9) }), {
        maxLength: 60,
      }),
      (spec, ceiling, steps) => {
        const strategy = readStrategy(spec)
        let batch = firstBatch(strategy, 1)
        let slots: Slot[] = []
        for (const { what, which } of steps) {
          const current = { batch, scope, slots, ceiling }
          const slot = slots[which % Math.max(1, slots.length)]
          if (what === 'take') {
            const free = admissibleIndices(
              slots.map(({ index }) => index),
              batchLimit(current),
            )
            if (free[0] !== undefined) slots.push(slotOf(free[0], 'working', batch.epoch))
          } else if (slot !== undefined && (slot.phase === 'working' || what === 'retry')) {
            const phase = what === 'fail' ? 'failed' : what === 'end' ? 'finished' : 'working'
            if (slot.phase !== 'finished') slots = slots.with(slots.indexOf(slot), { ...slot, phase })
          }
          const verdict = judgeBatch({ batch, scope, slots, ceiling }, { strategy, matched: 9, isNobodyWaiting: false })
          if (verdict.verdict === 'over') batch = verdict.next
          slots = slots.filter(({ phase, epoch = 0 }) => phase !== 'finished' || epoch >= batch.epoch)
          expect(slots.length).toBeLessThanOrEqual(ceiling)
          expect(batch.size).toBeGreaterThan(0)
        }
      },
    ),
  )
})
