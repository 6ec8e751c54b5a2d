/** Every interleaving of small fleets in batches, and the rules that look right and are not. */
import { describe, expect, test } from 'vitest'
import { heldIndices, type Slot } from '../../src/lease/slot.ts'
import { admissibleIndices } from '../../src/lease/rule.ts'
import { batchLimit, judgeBatch, type OpenBatch } from '../../src/lease/policy/batch.ts'
import { readStrategy } from '../../src/lease/policy/strategy.ts'
import { type Config, explore, productRules, type Rules } from './batches.ts'

const fixed = (initialBatch: number, ceiling: number, rest = {}) => ({
  strategy: readStrategy({ fixed: { initialBatch, ...rest } }),
  ceiling,
})
const linear = (ceiling: number, rest = {}) => ({ strategy: readStrategy({ linear: { ...rest } }), ceiling })

const two: Config = { nodes: 2, censuses: 2, policies: [fixed(1, 2)] }
const three: Config = { nodes: 3, censuses: 1, policies: [fixed(2, 2)] }

const growing: Config = { ...three, policies: [linear(3)] }
const failing: Config = { ...three, policies: [fixed(1, 2)], disturbances: { failures: 2 } }

describe('the rules of the product', () => {
  test.each<[string, Config]>([
    ['two nodes one by one, with two censuses', two],
    ['two nodes at once, with two censuses', { ...two, policies: [fixed(2, 2)] }],
    ['three nodes in batches of two', three],
    ['three nodes in growing batches', { ...three, policies: [linear(3)] }],
    ['a failing node', { ...three, disturbances: { failures: 1, retries: 1 } }],
    ['failing nodes one by one', { ...three, policies: [fixed(1, 2)], disturbances: { failures: 2, retries: 1 } }],
    [
      'failing nodes that stop the rollout',
      { ...three, policies: [fixed(1, 3, { failureThreshold: 1 })], disturbances: { failures: 1, retries: 1 } },
    ],
    ['deleted Nodes', { ...three, disturbances: { failures: 1, nodeDeletions: 1 } }],
    ['a deleted ledger', { ...two, policies: [fixed(1, 1)], disturbances: { failures: 1, ledgerDeletions: 1 } }],
    ['a cut of ceiling and size', { ...three, policies: [fixed(2, 2), fixed(1, 1)], disturbances: { edits: 1 } }],
    ['a raise of ceiling and size', { ...three, policies: [fixed(1, 1), fixed(2, 3)], disturbances: { edits: 1 } }],
    ['other work in the middle of a rollout', { ...three, disturbances: { rollouts: 1, returns: 1, failures: 1 } }],
    ['a reset in the middle of a rollout', { ...growing, disturbances: { resets: 1, failures: 1 } }],
    [
      'a reset beside other work',
      { ...two, censuses: 1, disturbances: { resets: 1, rollouts: 1, failures: 1, retries: 1 } },
    ],
  ])('hold with %s', (_, config) => {
    const result = explore(productRules, config)
    expect(result).toMatchObject({ outcome: 'holds' })
    expect(result.states).toBeGreaterThan(100)
  })
})

/** One that starts a next batch although `ended` of the open one are not all that it may have. */
const judgeWith = (change: (open: OpenBatch) => OpenBatch, isNobodyWaiting?: boolean): Rules => ({
  ...productRules,
  judge: (open, strategy, matched, isNobody) => {
    const verdict = judgeBatch(change(open), { strategy, matched, isNobodyWaiting: isNobodyWaiting ?? isNobody })
    return verdict.verdict === 'over' ? { ...verdict, next: { ...verdict.next, epoch: open.batch.epoch + 1 } } : verdict
  },
})
const withSlots = (open: OpenBatch, keep: (slot: Slot) => boolean): OpenBatch => ({
  ...open,
  slots: open.slots.filter(keep),
})
const isFailedBefore = ({ batch }: OpenBatch, { phase, epoch = 0 }: Slot): boolean =>
  phase === 'failed' && epoch < batch.epoch

describe('mutants', () => {
  test.each<[rule: string, violation: string, Rules, Config]>([
    [
      'a batch that is over while a node is at work',
      'a result is lost',
      judgeWith((open) => withSlots(open, ({ phase }) => phase !== 'working'), true),
      three,
    ],
    [
      'a batch that is over when those that have joined so far are done',
      'a result is lost',
      judgeWith((open) => open, true),
      three,
    ],
    [
      'a batch that is over when no slot is free',
      'a result is lost',
      {
        ...productRules,
        judge: (open, strategy, matched, isNobodyWaiting) => {
          const isFull = admissibleIndices(heldIndices(open.slots, open.scope), batchLimit(open)).length === 0
          return judgeBatch(open, { strategy, matched, isNobodyWaiting: isNobodyWaiting || isFull })
        },
      },
      growing,
    ],
    [
      'results of earlier batches that count again',
      'a batch without a node is over',
      judgeWith((open) => ({ ...open, slots: open.slots.map((slot) => ({ ...slot, epoch: open.batch.epoch })) })),
      failing,
    ],
    [
      'a limit without the slots that failed',
      'nobody can go on',
      { ...productRules, limit: ({ batch }) => batch.size },
      failing,
    ],
    [
      'a limit without the ceiling',
      '3 nodes are out under a ceiling of 2',
      { ...productRules, limit: (open) => batchLimit({ ...open, ceiling: Infinity }) },
      failing,
    ],
    [
      'a limit that leaves failed slots out of the count',
      '3 nodes are out under a ceiling of 2',
      {
        ...productRules,
        limit: (open) => open.batch.size + open.slots.filter((slot) => isFailedBefore(open, slot)).length,
      },
      failing,
    ],
    [
      'a size that alone is the limit',
      '2 nodes are out under a ceiling of 1',
      { ...productRules, limit: ({ batch }) => batch.size },
      { ...three, policies: [fixed(2, 1)] },
    ],
    [
      'a stop that does not stop',
      'a node starts in spite of the stop',
      { ...productRules, limit: (open) => batchLimit({ ...open, batch: { ...open.batch, stopped: false } }) },
      { ...three, policies: [fixed(1, 3, { failureThreshold: 1 })], disturbances: { failures: 1 } },
    ],
    [
      'a confirmation that does not compare epochs',
      'a result is lost',
      { ...productRules, comparesEpoch: false },
      growing,
    ],
    [
      'an admission by the ledger for other work',
      'a result is lost',
      { ...productRules, comparesCount: false },
      { ...three, disturbances: { rollouts: 1 } },
    ],
    [
      'a ledger that is written over another one',
      'a result is counted twice',
      { ...productRules, comparesVersion: false },
      two,
    ],
    [
      'a slot that is released when its node is done',
      '3 nodes start in a batch of 2',
      { ...productRules, keepsFinishedSlot: false },
      three,
    ],
    [
      'other work under the slot of finished work',
      'work starts without an admission',
      { ...productRules, worksUnderFinishedSlot: true },
      { ...three, disturbances: { rollouts: 1 } },
    ],
    [
      'a batch that is over without a node',
      'a batch without a node is over',
      {
        ...productRules,
        judge: (open, strategy, matched, isNobodyWaiting) => {
          const { batch, slots } = open
          const isEmpty = isNobodyWaiting && !slots.some(({ epoch = 0 }) => epoch >= batch.epoch)
          return isEmpty
            ? { verdict: 'over', next: { ...batch, epoch: batch.epoch + 1 }, failedNodes: [] }
            : judgeBatch(open, { strategy, matched, isNobodyWaiting })
        },
      },
      three,
    ],
    [
      'a ledger that begins again below the epochs of slots that are out',
      'nobody can go on',
      judgeWith((open) => withSlots(open, ({ epoch = 0 }) => epoch <= open.batch.epoch)),
      { ...two, policies: [fixed(1, 1)], disturbances: { ledgerDeletions: 1 } },
    ],
    [
      'a limit that grows with failures of the open batch',
      '2 nodes start in a batch of 1',
      {
        ...productRules,
        limit: ({ batch, ceiling, slots }) =>
          Math.min(ceiling, batch.size + slots.filter(({ phase }) => phase === 'failed').length),
      },
      failing,
    ],
    [
      'a slot that is released when its node fails',
      '2 nodes are out under a ceiling of 1',
      { ...productRules, keepsFailedSlot: false },
      { ...three, policies: [fixed(1, 1)], disturbances: { failures: 1 } },
    ],
    ['a start without a second look at the ledger', 'a result is lost', { ...productRules, confirms: false }, growing],
    [
      'a ledger that is judged with the slots of an earlier LIST',
      'a result is lost',
      { ...productRules, listsTogether: false },
      { ...two, policies: [fixed(2, 2)] },
    ],
    [
      'an epoch that is written before its results',
      'a result is lost',
      { ...productRules, writesTogether: false },
      two,
    ],
    [
      'a reset that keeps the open batch beside other work',
      'a result of the work before is counted',
      { ...productRules, passesAtReset: false },
      { ...two, disturbances: { resets: 1, rollouts: 1 } },
    ],
  ])('the search catches %s: %s', (_, violation, rules, config) => {
    expect(explore(rules, config)).toMatchObject({ outcome: 'violated', violation })
  })
})
