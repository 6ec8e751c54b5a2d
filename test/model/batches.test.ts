/** Every interleaving of small fleets in batches, and the rules that look right and are not. */
import { describe, expect, test } from 'vitest'
import { batchLimit, judgeBatch, type OpenBatch } from '../../src/lease/policy/batch.ts'
import { readStrategy } from '../../src/lease/policy/strategy.ts'
import { admissibleIndices } from '../../src/lease/rule.ts'
import { heldIndices, type Slot } from '../../src/lease/slot.ts'
import { explore } from './batches/explore.ts'
import { productRules, type Rules } from './batches/rules.ts'
import { type Config, type Disturbances, noDisturbances } from './batches/state.ts'

const fixed = (initialBatch: number, ceiling: number, rest = {}) => ({
  strategy: readStrategy({ fixed: { initialBatch, ...rest } }),
  ceiling,
})
const growingBatches = { strategy: readStrategy({ linear: {} }), ceiling: 3 }
const stoppingBatches = fixed(1, 3, { failureThreshold: 1 })

const searchOf =
  (nodes: number, censuses: number) =>
  (policies: Config['policies'], disturbances: Partial<Disturbances> = {}): Config => ({
    nodes,
    censuses,
    policies,
    disturbances: { ...noDisturbances, ...disturbances },
  })
const two = searchOf(2, 2)
const three = searchOf(3, 1)
const oneByOne = two([fixed(1, 2)])
const inTwos = three([fixed(2, 2)])
const growing = three([growingBatches])
const failing = three([fixed(1, 2)], { failures: 2 })

describe('the rules of the product', () => {
  test.each<[string, states: number, Config]>([
    ['two nodes one by one, with two censuses', 123, oneByOne],
    ['two nodes at once, with two censuses', 156, two([fixed(2, 2)])],
    ['three nodes in batches of two', 567, inTwos],
    ['three nodes in growing batches', 446, growing],
    ['a failing node', 2406, three([fixed(2, 2)], { failures: 1, retries: 1 })],
    ['failing nodes one by one', 3005, three([fixed(1, 2)], { failures: 2, retries: 1 })],
    ['failing nodes that stop the rollout', 811, three([stoppingBatches], { failures: 1, retries: 1 })],
    ['deleted Nodes', 2964, three([fixed(2, 2)], { failures: 1, nodeDeletions: 1 })],
    ['a deleted ledger', 1080, two([fixed(1, 1)], { failures: 1, ledgerDeletions: 1 })],
    ['a cut of ceiling and size', 2701, three([fixed(2, 2), fixed(1, 1)], { edits: 1 })],
    ['a raise of ceiling and size', 1745, three([fixed(1, 1), fixed(2, 3)], { edits: 1 })],
    ['other work in the middle of a rollout', 37_517, three([fixed(2, 2)], { rollouts: 1, returns: 1, failures: 1 })],
    ['a reset in the middle of a rollout', 5069, three([growingBatches], { resets: 1, failures: 1 })],
    [
      'a reset beside other work',
      11_280,
      searchOf(2, 1)([fixed(1, 2)], { resets: 1, rollouts: 1, failures: 1, retries: 1 }),
    ],
  ])('hold with %s, and every state leads to an end', (_, states, config) => {
    expect(explore(productRules, config)).toEqual({ outcome: 'holds', states })
  })
})

/** It judges an open batch that is not as it is. */
const judging = (change: (open: OpenBatch) => OpenBatch, isAlone?: true): Partial<Rules> => ({
  judge: (open, { isNobodyWaiting, ...asked }) => {
    const verdict = judgeBatch(change(open), { ...asked, isNobodyWaiting: isAlone ?? isNobodyWaiting })
    return verdict.verdict === 'over' ? { ...verdict, next: { ...verdict.next, epoch: open.batch.epoch + 1 } } : verdict
  },
})
const withSlots = (open: OpenBatch, keep: (slot: Slot) => boolean): OpenBatch => ({
  ...open,
  slots: open.slots.filter(keep),
})
const failed = ({ slots }: OpenBatch): Slot[] => slots.filter(({ phase }) => phase === 'failed')

const judgedWithoutWorking = judging((open) => withSlots(open, ({ phase }) => phase !== 'working'), true)
const judgedOnceAllDone = judging((open) => open, true)
const judgedOnceFull: Partial<Rules> = {
  judge: (open, { isNobodyWaiting, ...asked }) => {
    const isFull = admissibleIndices(heldIndices(open.slots, open.scope), batchLimit(open)).length === 0
    return judgeBatch(open, { ...asked, isNobodyWaiting: isNobodyWaiting || isFull })
  },
}
const judgedWithoutNodes: Partial<Rules> = {
  judge: (open, asked) => {
    const { batch, slots } = open
    return asked.isNobodyWaiting && !slots.some(({ epoch = 0 }) => epoch >= batch.epoch)
      ? { verdict: 'over', next: { ...batch, epoch: batch.epoch + 1 }, failedNodes: [] }
      : judgeBatch(open, asked)
  },
}
const judgedWithEarlierResults = judging((open) => ({
  ...open,
  slots: open.slots.map((slot) => ({ ...slot, epoch: open.batch.epoch })),
}))
const judgedByLaterEpochs = judging((open) => withSlots(open, ({ epoch = 0 }) => epoch <= open.batch.epoch))

const limitedBySize: Partial<Rules> = { limit: ({ batch }) => batch.size }
const limitedWithoutCeiling: Partial<Rules> = { limit: (open) => batchLimit({ ...open, ceiling: Infinity }) }
const limitedBesideFailed: Partial<Rules> = {
  limit: (open) => open.batch.size + failed(open).filter(({ epoch = 0 }) => epoch < open.batch.epoch).length,
}
const limitedWithoutStop: Partial<Rules> = {
  limit: (open) => batchLimit({ ...open, batch: { ...open.batch, stopped: false } }),
}
const limitedByFailures: Partial<Rules> = {
  limit: (open) => Math.min(open.ceiling, open.batch.size + failed(open).length),
}

const lost = 'a result is lost'
const stuck = 'never complete'
const empty = 'a batch without a node is over'
const otherWork = three([fixed(2, 2)], { rollouts: 1 })

describe('mutants', () => {
  test.each<[rule: string, violation: string, Partial<Rules>, Config]>([
    ['a batch that is over while a node is at work', lost, judgedWithoutWorking, inTwos],
    ['a batch that is over when those that have joined so far are done', lost, judgedOnceAllDone, inTwos],
    ['a batch that is over when no slot is free', lost, judgedOnceFull, growing],
    ['a batch that is over without a node', empty, judgedWithoutNodes, inTwos],
    ['results of earlier batches that count again', empty, judgedWithEarlierResults, failing],
    [
      'a ledger that begins again below the epochs of slots that are out',
      stuck,
      judgedByLaterEpochs,
      two([fixed(1, 1)], { ledgerDeletions: 1 }),
    ],
    ['a limit without the slots that failed', stuck, limitedBySize, failing],
    ['a limit without the ceiling', '3 nodes are out under a ceiling of 2', limitedWithoutCeiling, failing],
    [
      'a limit that leaves failed slots out of the count',
      '3 nodes are out under a ceiling of 2',
      limitedBesideFailed,
      failing,
    ],
    ['a size that alone is the limit', '2 nodes are out under a ceiling of 1', limitedBySize, three([fixed(2, 1)])],
    [
      'a stop that does not stop',
      'a node starts in spite of the stop',
      limitedWithoutStop,
      three([stoppingBatches], { failures: 1 }),
    ],
    ['a limit that grows with failures of the open batch', '2 nodes start in a batch of 1', limitedByFailures, failing],
    ['a confirmation that does not compare epochs', lost, { comparesEpoch: false }, growing],
    ['an admission by the ledger for other work', lost, { comparesCount: false }, otherWork],
    ['a ledger that is written over another one', 'a result is counted twice', { comparesVersion: false }, oneByOne],
    [
      'a slot that is released when its node is done',
      '3 nodes start in a batch of 2',
      { keepsFinishedSlot: false },
      inTwos,
    ],
    [
      'other work under the slot of finished work',
      'work starts without an admission',
      { worksUnderFinishedSlot: true },
      otherWork,
    ],
    [
      'a slot that is released when its node fails',
      '2 nodes are out under a ceiling of 1',
      { keepsFailedSlot: false },
      three([fixed(1, 1)], { failures: 1 }),
    ],
    ['a start without a second look at the ledger', lost, { confirms: false }, growing],
    ['a ledger that is judged with the slots of an earlier LIST', lost, { listsTogether: false }, two([fixed(2, 2)])],
    ['an epoch that is written before its results', lost, { writesTogether: false }, oneByOne],
    [
      'a reset that keeps the open batch beside other work',
      'a result of the work before is counted',
      { passesAtReset: false },
      two([fixed(1, 2)], { resets: 1, rollouts: 1 }),
    ],
  ])('the search catches %s: %s', (_, violation, rule, config) => {
    expect(explore({ ...productRules, ...rule }, config)).toMatchObject({ outcome: 'violated', violation })
  })
})
