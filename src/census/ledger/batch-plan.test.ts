import { describe, expect, test } from 'vitest'
import { allAgents, countsOf, nodeReporting, skyhookWith, spec } from '../../../test/kit/objects/census-objects.ts'
import { listedSlot } from '../../../test/kit/slots/listed-slot.ts'
import type { Ledger, LedgerScope } from '../../lease/ledger.ts'
import { skyhookScope } from '../../lease/names.ts'
import { batchBeside } from '../../lease/policy/batch.ts'
import type { Slot } from '../../lease/slot.ts'
import { ignoreLabel, resetBatchesKey } from '../../schemas/annotations.ts'
import type { BatchState, DeploymentPolicySpec, PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { SkyhookSpec, SlotPhase } from '../../schemas/skyhook.ts'
import type { AgentState } from '../../stages/skyhook/gates.ts'
import {
  type BatchPlan,
  type Expectation,
  looksAfter,
  looksNow,
  nextLookAtMs,
  planBatches,
  type SlotLooks,
} from './batch-plan.ts'
import type { CompartmentCount } from '../model/count.ts'
import { planLedger } from './ledger-plan.ts'

const policySpec: DeploymentPolicySpec = {
  default: { budget: { count: 3 }, strategy: { linear: { initialBatch: 2, failureThreshold: 1 } } },
  compartments: [{ name: 'gpu', selector: { matchLabels: { gpu: 'true' } }, budget: { percent: 50 } }],
}
const policyOf = (change: Partial<DeploymentPolicySpec> = {}, generation = 1) =>
  ({
    state: 'found',
    uid: 'policy-uid',
    generation,
    spec: { ...policySpec, ...change },
  }) as const satisfies PolicyKnowledge

const paced: SkyhookSpec = { ...spec, deploymentPolicy: 'careful' }
type Scenario = {
  policy?: Extract<PolicyKnowledge, { state: 'found' }>
  statuses?: readonly string[]
  currentLedger?: Ledger
  slots?: readonly Slot[]
  idleMs?: number
  /** By node. */
  agents?: Readonly<Record<string, AgentState>>
  labels?: Readonly<Record<string, Readonly<Record<string, string>>>>
  annotation?: string
  spec?: SkyhookSpec
}

/** Nodes n0, n1, …; the first one is a gpu node. */
function scene({ policy = policyOf(), statuses = ['waiting', 'waiting', 'waiting'], annotation, ...rest }: Scenario) {
  const skyhook = skyhookWith({
    spec: rest.spec ?? paced,
    ...(annotation !== undefined && { metadata: { annotations: { [resetBatchesKey]: annotation } } }),
  })
  const nodes = statuses.map((text, at) => {
    const [status = '', reason] = text.split(' ')
    return nodeReporting(`n${at}`, {
      status,
      of: skyhook.spec,
      ...(reason !== undefined && { reason: [reason, 'x'] as const }),
      labels: { ...(at === 0 && { gpu: 'true' }), ...rest.labels?.[`n${at}`] },
    })
  })
  const counts = countsOf(skyhook, nodes, allAgents('ready', rest.agents), policy)
  const { currentLedger, slots, idleMs = 0 } = rest
  const plan = planBatches({ skyhook, policy, counts, currentLedger, slots, idleMs: () => idleMs })
  return { skyhook, counts, plan }
}
const planned = (scenario: Scenario): BatchPlan => scene(scenario).plan

function ledgerAfter(scenario: Scenario, batch: Partial<BatchState> = {}): Ledger {
  const { skyhook, counts, plan } = scene(scenario)
  const batches = { ...plan, batches: { ...plan.batches, __default__: { ...plan.batches['__default__'], ...batch } } }
  const times = { lastWriteMs: undefined, nowMs: 0, wallMs: 0 }
  return planLedger({
    skyhook,
    counts,
    agents: 3,
    currentLedger: scenario.currentLedger,
    isKept: false,
    matched: undefined,
    slotTimes: [],
    batches: batches as BatchPlan,
    ...times,
  }).ledger
}

const slotOf = (index: number, phase: SlotPhase, epoch: number, compartment = '__default__'): Slot => {
  const scope = skyhookScope({ name: 'demo', uid: 'demo-uid' }, compartment)
  const node = { name: `n${index}`, uid: `n${index}-uid`, bootId: '' }
  return listedSlot(scope, { index }, node, { phase, generation: 3, epoch }, { uid: `s${index}` })
}

test('the first ledger opens a batch for each compartment and has the counts of the census', () => {
  const ledger = ledgerAfter({ annotation: 'monday' })
  expect(ledger).toMatchObject({
    policy: { uid: 'policy-uid', generation: 1 },
    reset: 'monday',
    compartments: {
      gpu: { matched: 1, completed: 0, waiters: 1, candidates: 1, batch: { epoch: 1, size: 2 } },
      __default__: { matched: 2, completed: 0, waiters: 2, batch: { epoch: 1, currentBatch: 1, size: 2 } },
    },
  })
  expect(ledger.compartments['']).toBeUndefined()
})

describe('planBatches', () => {
  const currentLedger = ledgerAfter({})
  const late = ledgerAfter({}, { epoch: 5, currentBatch: 4, size: 3, completed: 7, consecutiveFailures: 1 })

  test('a turn without slots leaves the batches as they are', () => {
    expect(planned({ currentLedger: late }).batches['__default__']).toEqual(late.compartments['__default__']?.batch)
  })

  test('a batch is closed with its results, those of other compartments stay open', () => {
    const slots = [slotOf(0, 'working', 1, 'gpu'), slotOf(1, 'finished', 1), slotOf(2, 'finished', 1)]
    const { batches } = planned({ currentLedger, slots, statuses: ['in_progress', 'complete', 'complete'] })
    expect(batches['__default__']).toMatchObject({ epoch: 2, currentBatch: 2, completed: 2, size: 2, lastBatchSize: 2 })
    expect(batches['gpu']).toMatchObject({ epoch: 1, completed: 0 })
  })

  describe('nodes that did not wait when a batch started', () => {
    const notWaiting = (scenario: Scenario): number | undefined => planned(scenario).batches['__default__']?.notWaiting

    test('nodes that are complete, failing or blocked are counted for the first batch', () => {
      const statuses = ['waiting', 'complete', 'erroring', 'blocked TaintNotTolerated', 'waiting', 'waiting']
      expect(notWaiting({ statuses })).toBe(3)
    })

    test('nodes of a batch that is over are counted for the next one even if their Nodes are late', () => {
      const slots = [slotOf(1, 'finished', 1), slotOf(2, 'finished', 1)]
      const statuses = ['in_progress', 'complete', 'waiting', 'waiting', 'complete']
      expect(notWaiting({ currentLedger, slots, statuses })).toBe(3)
    })

    test('nodes of other work are counted once the work changes', () => {
      const scenario = { currentLedger: late, spec: { ...paced, runtimeRequired: true } }
      const changed = { ...scenario, currentLedger: { ...late, applied: 'other' } }
      expect(notWaiting({ ...changed, statuses: ['waiting', 'complete', 'waiting'] })).toBe(1)
    })

    test('the number stays while the batch is open, also after a reset', () => {
      const statuses = ['waiting', 'complete', 'in_progress', 'waiting']
      const known = ledgerAfter({}, { notWaiting: 7 })
      expect(notWaiting({ currentLedger: known, statuses })).toBe(7)
      expect(notWaiting({ currentLedger: known, statuses, annotation: 'tuesday' })).toBe(7)
    })

    test('a ledger of an earlier version lacks that number until its next batch', () => {
      const now = currentLedger.compartments['__default__'] as LedgerScope
      const batch = batchBeside(now.batch as BatchState, undefined)
      const scope = { ...now, batch }
      const older: Ledger = { ...currentLedger, compartments: { ...currentLedger.compartments, __default__: scope } }
      expect(planned({ currentLedger: older }).batches['__default__']).toEqual(batch)
    })
  })

  test.each<[string, string, number, number, Scenario?]>([
    ['open while another node is in line', 'waiting WaitingForBatch', 60_000, 1],
    ['open while a paused node may come back', 'paused', 60_000, 1],
    ['over at once where the other node has a taint', 'blocked TaintNotTolerated', 0, 2],
    ['over at once where the other node is ignored', 'waiting', 0, 2, { labels: { n2: { [ignoreLabel]: 'true' } } }],
    ['over at once where the other node has no agent', 'waiting WaitingForBatch', 0, 2, { agents: { n2: 'silent' } }],
    ['open while the other node waits for something else', 'waiting WaitingForPriority', 9_999, 1],
    ['over once the other node has waited for something else for ten seconds', 'waiting WaitingForPriority', 10_000, 2],
    ['open just after the agent of a node in line has gone', 'waiting', 9_999, 1, { agents: { n2: 'unready' } }],
    ['over once that agent has been away for ten seconds', 'waiting', 10_000, 2, { agents: { n2: 'unready' } }],
  ])('a batch with a free place is %s', (_, other, idleMs, epoch, rest = {}) => {
    const slots = [slotOf(1, 'finished', 1)]
    const statuses = ['blocked TaintNotTolerated', 'complete', other]
    expect(planned({ currentLedger, slots, statuses, idleMs, ...rest }).batches['__default__']).toMatchObject({ epoch })
  })

  test('nodes that were complete or failing before they joined are not results of a batch', () => {
    const slots = [slotOf(1, 'finished', 1)]
    const statuses = ['waiting', 'complete', 'complete', 'erroring']
    const { batches } = planned({ currentLedger, slots, statuses, idleMs: 10_000 })
    expect(batches['__default__']).toMatchObject({ epoch: 2, completed: 1, failed: 0, lastBatchSize: 1 })
  })

  test('a node that fails, recovers and fails again is one result, and the batches continue', () => {
    const policy = policyOf({ default: { budget: { count: 3 }, strategy: { linear: { initialBatch: 2 } } } })
    const statuses = ['waiting', 'erroring', 'complete', 'waiting']
    const slots = [slotOf(1, 'failed', 1), slotOf(2, 'finished', 1)]
    const second = ledgerAfter({ currentLedger: ledgerAfter({ policy, statuses }), policy, statuses, slots })
    const { batch } = second.compartments['__default__'] ?? {}
    expect(batch).toMatchObject({ epoch: 2, completed: 1, failed: 1, consecutiveFailures: 1, size: 3 })
    const last = (phase: SlotPhase, status: string): BatchPlan =>
      planned({
        currentLedger: second,
        policy,
        statuses: ['waiting', status, 'complete', 'complete'],
        slots: [slotOf(1, phase, 1), slotOf(3, 'finished', 2)],
      })
    for (const after of [last('working', 'in_progress'), last('failed', 'erroring'), last('finished', 'complete')])
      expect(after.batches['__default__']).toMatchObject({ epoch: 3, completed: 2, failed: 1, consecutiveFailures: 0 })
  })

  test('a node that has changed its compartment is a result of the batch that admitted it', () => {
    const slots = [slotOf(0, 'finished', 1), slotOf(1, 'finished', 1)]
    const { batches } = planned({ currentLedger, slots, statuses: ['complete', 'complete', 'waiting'] })
    expect(batches['__default__']).toMatchObject({ epoch: 2, completed: 2 })
    expect(batches['gpu']).toMatchObject({ epoch: 1, completed: 0 })
  })

  test('maxCount ends a batch that its percentage would let grow', () => {
    const policy = policyOf({ default: { ...policySpec.default, budget: { percent: 100, maxCount: 1 } } })
    const slots = [slotOf(1, 'finished', 1)]
    const capped = planned({ currentLedger, slots, policy, statuses: ['waiting', 'complete', 'waiting'] })
    expect(capped.batches['__default__']).toMatchObject({ epoch: 2, lastBatchSize: 1 })
  })

  test('a stop stays, also for other work, until somebody resets the batches or the policy starts them over', () => {
    const slots = [slotOf(1, 'failed', 1), slotOf(2, 'finished', 1)]
    const statuses = ['waiting', 'erroring', 'complete']
    const stopped = { epoch: 2, stopped: true, consecutiveFailures: 1, failed: 1, completed: 1 }
    expect(planned({ currentLedger, slots, statuses }).batches['__default__']).toMatchObject(stopped)
    const ledger = ledgerAfter({ currentLedger, slots, statuses })
    const other = { ...paced, packages: { tuning: { version: '2.0.0', image: 'registry.example.com/tuning' } } }
    const next = planned({ currentLedger: ledger, spec: other }).batches['__default__']
    expect(next).toMatchObject({ epoch: 3, stopped: true, failed: 0, completed: 0 })
    const policy = policyOf({ resetBatchStateOnCompletion: true })
    const first = { currentBatch: 1, stopped: false, consecutiveFailures: 0, size: 2 }
    expect(planned({ currentLedger: ledger, spec: other, policy }).batches['__default__']).toMatchObject(first)
    const reset = planned({ currentLedger: ledger, annotation: 'tuesday' })
    expect(reset).toMatchObject({ reset: 'tuesday', batches: { __default__: { ...first, epoch: 2, failed: 0 } } })
  })

  test('other work starts the batches over once, even if nodes keep the previous work for long', () => {
    const policy = policyOf({ resetBatchStateOnCompletion: true })
    const other = { ...paced, packages: { tuning: { version: '2.0.0', image: 'registry.example.com/tuning' } } }
    const statuses = ['waiting', 'complete', 'waiting']
    const ledger = ledgerAfter({ currentLedger: late, spec: other, policy, statuses })
    expect(ledger.compartments['__default__']?.batch).toMatchObject({ epoch: 6, currentBatch: 1, size: 2 })
    const grown = ledgerAfter({ currentLedger: ledger, spec: other, policy, statuses }, { currentBatch: 2, size: 3 })
    const again = planned({ currentLedger: grown, spec: other, policy, statuses })
    expect(again.batches['__default__']).toMatchObject({ epoch: 6, currentBatch: 2, size: 3 })
  })

  test('a reset is carried out once', () => {
    const ledger = ledgerAfter({ currentLedger: late, annotation: 'monday' }, { currentBatch: 2, size: 3 })
    const again = planned({ currentLedger: ledger, annotation: 'monday' })
    expect(again.batches['__default__']).toMatchObject({ currentBatch: 2, size: 3 })
    expect(planned({ currentLedger: ledger }).reset).toBe('monday')
  })

  test('a reset beside other work opens another batch, in which failures of the previous work do not count', () => {
    const other = { ...paced, packages: { tuning: { version: '2.0.0', image: 'registry.example.com/tuning' } } }
    const statuses = ['waiting', 'erroring', 'in_progress']
    const ledger = ledgerAfter({ currentLedger: late, spec: other, annotation: 'monday', statuses })
    expect(ledger.compartments['__default__']?.batch).toMatchObject({ epoch: 6, currentBatch: 1, size: 2, failed: 0 })
    const slots = [slotOf(1, 'failed', 5), slotOf(2, 'finished', 5)]
    const next = planned({ currentLedger: ledger, spec: other, annotation: 'monday', statuses, slots })
    expect(next.batches['__default__']).toMatchObject({ epoch: 6, consecutiveFailures: 0, stopped: false })
  })

  describe('completion', () => {
    const statuses = ['complete', 'complete', 'complete']
    const policy = policyOf({ resetBatchStateOnCompletion: true })
    test('the batches start over when all nodes are complete and the last batch is evaluated', () => {
      const open = [slotOf(1, 'working', 5)]
      expect(planned({ currentLedger: late, policy, statuses, slots: open }).batches['__default__']).toMatchObject({
        currentBatch: 4,
      })
      const done = [slotOf(1, 'finished', 5)]
      expect(planned({ currentLedger: late, policy, statuses, slots: done }).batches['__default__']).toEqual({
        epoch: 6,
        currentBatch: 1,
        size: 2,
        completed: 8,
        failed: 0,
        consecutiveFailures: 0,
        stopped: false,
        lastBatchSize: 0,
        lastBatchFailed: false,
        notWaiting: 2,
      })
      expect(planned({ currentLedger: late, policy, statuses, slots: [] })).toMatchObject({
        atRest: new Set(['gpu', '__default__']),
        batches: { __default__: { epoch: 5, currentBatch: 1, completed: 7 } },
      })
    })

    test("the Skyhook's own option comes before that of the policy", () => {
      const own = { ...paced, deploymentPolicyOptions: { resetBatchStateOnCompletion: false } }
      const kept = planned({ currentLedger: late, policy, statuses, slots: [], spec: own })
      expect(kept.batches['__default__']).toMatchObject({ currentBatch: 4 })
    })
  })

  test('an edit of the policy keeps the batches, and a new compartment starts its first one', () => {
    const policy = policyOf({ compartments: [{ name: 'cpu', selector: {}, budget: { count: 1 } }] }, 2)
    const { batches } = planned({ currentLedger: late, policy })
    expect(batches['__default__']).toMatchObject({ epoch: 5, currentBatch: 4 })
    expect(batches['cpu']).toMatchObject({ epoch: 1, currentBatch: 1 })
    expect(batches['gpu']).toBeUndefined()
  })

  test('a policy that is deleted and created again during a rollout keeps the batches', () => {
    const policy = { ...policyOf(), uid: 'other-uid' }
    expect(planned({ currentLedger: late, policy }).batches).toEqual(planned({ currentLedger: late }).batches)
    expect(ledgerAfter({ currentLedger: late, policy }).policy).toEqual({ uid: 'other-uid', generation: 1 })
  })
})

const compartment = (name: string, ...statuses: string[]): CompartmentCount => ({
  name,
  nodes: countsOf(
    skyhookWith(),
    statuses.map((status, at) => nodeReporting(`n${at}`, { status })),
  ).nodes,
})
const byStatus = (): Expectation => 'by-status'

test('the census looks soon after the last node of a batch is done, and then less and less often', () => {
  const done = [compartment('a', 'complete', 'waiting')]
  let looks: SlotLooks = looksNow(new Map(), done, undefined, 1_000)
  expect(nextLookAtMs(looks)).toBe(1_200)
  const delays: number[] = []
  for (let nowMs = 1_200; delays.length < 8; nowMs = nextLookAtMs(looks)) {
    looks = looksAfter(looksNow(looks, done, undefined, nowMs), done, byStatus, nowMs)
    delays.push(nextLookAtMs(looks) - nowMs)
  }
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
})

test('a compartment whose nodes are at work does not put off the looks at another one', () => {
  const other = compartment('b', 'complete')
  let looks: SlotLooks = new Map()
  for (let second = 0; second < 20; second++) {
    const busy = compartment('a', 'in_progress', second % 2 === 0 ? 'waiting' : 'in_progress')
    looks = looksNow(looks, [busy, other], undefined, second * 1_000)
  }
  expect(nextLookAtMs(looks)).toBe(200)
})

test('a compartment without slots is not looked at before something changes', () => {
  const all = [compartment('a', 'complete')]
  const looks = looksAfter(looksNow(new Map(), all, undefined, 0), all, () => 'nothing', 200)
  expect(nextLookAtMs(looksNow(looks, all, undefined, 900_000))).toBe(Infinity)
  expect(nextLookAtMs(looksNow(looks, [compartment('a', 'waiting')], undefined, 900_000))).toBe(900_200)
})
