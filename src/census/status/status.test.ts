import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { disableKey, ignoreLabel, pauseKey } from '../../schemas/annotations.ts'
import type { Ledger } from '../../lease/ledger.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { planFinalizer, type FinalizerPlan } from '../model/finalizer.ts'
import type { CensusNode } from '../model/node-facts.ts'
import { conditionOf, type Condition, type SkyhookStatus } from '../model/skyhook-status.ts'
import { isUrgent, nextStatus } from './status.ts'
import {
  allAgents,
  countsOf,
  entry,
  failedForGood,
  nodeReporting,
  skyhookWith,
  spec,
  type NodeReport,
} from '../../../test/kit/objects/census-objects.ts'

const nowMs = Date.UTC(2026, 10, 20, 14, 0, 0, 500)
const nothing: FinalizerPlan = { action: 'nothing' }

type Scenario = {
  skyhook?: Skyhook
  finalizer?: FinalizerPlan
  isSpecPropagating?: boolean
  mayFailuresBeOld?: boolean
  nowMs?: number
  agents?: ReturnType<typeof allAgents>
  policy?: PolicyKnowledge
  ledger?: Ledger
  defaultBudget?: Budget
  isNodeWrightServed?: boolean
}

function statusOf(nodes: readonly CensusNode[], scenario: Scenario = {}): SkyhookStatus {
  const { skyhook = skyhookWith(), finalizer = nothing, isSpecPropagating = false, agents, policy, ledger } = scenario
  return nextStatus({
    skyhook,
    counts: countsOf(skyhook, nodes, agents, policy, scenario.defaultBudget),
    ledger,
    finalizer,
    isSpecPropagating,
    mayFailuresBeOld: scenario.mayFailuresBeOld ?? false,
    isNodeWrightServed: scenario.isNodeWrightServed ?? false,
    nowMs: scenario.nowMs ?? nowMs,
  })
}
const nodes = (...reports: (string | NodeReport)[]): CensusNode[] =>
  reports.map((one, at) => nodeReporting(`n${at + 1}`, typeof one === 'string' ? { status: one } : one))
const conditionText = (status: SkyhookStatus, type: string): string | undefined => {
  const condition = conditionOf(status, type)
  return condition && `${condition.status} ${condition.reason}`
}
const paced = skyhookWith({ spec: { ...spec, deploymentPolicy: 'careful' } })
const failing: NodeReport = {
  ...failedForGood,
  reason: ['StepFailed', 'package tuning 1.1.0: apply.sh ended with 1'],
}
const failedOnce: NodeReport = { ...failing, entries: [entry({ stage: 'apply', state: 'erroring', restarts: 1 })] }
/** Its next attempt runs: the agent says nothing else. */
const retrying: NodeReport = {
  status: 'in_progress',
  entries: [entry({ stage: 'apply', state: 'in_progress', restarts: 3 })],
}
const tainted: NodeReport = { status: 'blocked', reason: ['TaintNotTolerated', 'the node has gpu:NoSchedule'] }
const minutesAgo = (minutes: number): string => new Date(nowMs - minutes * 60_000).toISOString()
const missingImage = (minutes: number, code = 'not-found'): NodeReport => ({
  status: 'waiting',
  entries: [],
  reason: ['ImagePull', 'the registry has no such image', { code, since: minutesAgo(minutes) }],
})

describe('the fields', () => {
  test('the status of a rollout has all counts', () => {
    const status = statusOf(
      nodes('complete', 'in_progress', failing, 'waiting', {
        annotations: { 'skyhook.nvidia.com/cordon_demo': 'true' },
      }),
    )
    const { conditions: _, nodeState, ...rest } = status
    expect(rest).toEqual({
      observedGeneration: 3,
      status: 'in_progress',
      nodeStatus: { n1: 'complete', n2: 'in_progress', n3: 'erroring', n4: 'waiting', n5: 'complete' },
      nodeStateTruncated: false,
      nodesInProgress: 2,
      completeNodes: '2/5',
      packageList: 'tuning:1.1.0',
      nodesSelected: 5,
      nodesUpdated: 2,
      nodesReady: 1,
      nodesUnavailable: 1,
      nodesPending: 1,
    })
    expect(nodeState?.['n1']).toEqual({ 'tuning|1.1.0': entry() })
  })

  test('the packages are listed by name', () => {
    const many = { packages: { b: { version: '2', image: 'b' }, a: { version: '1.0', image: 'a' } } }
    expect(statusOf([], { skyhook: skyhookWith({ spec: many }) }).packageList).toBe('a:1.0,b:2')
  })

  test('fields of others survive, except those that only the operator updates', () => {
    const before = {
      configUpdates: { a: ['x'] },
      nodeBootIds: { n1: 'b' },
      nodePriority: { n1: 't' },
      compartmentStatuses: { c: { matched: 1 } },
    }
    const status = statusOf([], { skyhook: skyhookWith({ status: before }) })
    expect(status).toMatchObject({ configUpdates: { a: ['x'] } })
    expect(Object.keys(status)).not.toEqual(expect.arrayContaining(['nodeBootIds']))
    expect(
      Object.keys(status).filter((key) => ['nodeBootIds', 'nodePriority', 'compartmentStatuses'].includes(key)),
    ).toEqual([])
  })
})

describe('compartments', () => {
  test('a Skyhook with a budget of its own has one compartment, one without any budget has none', () => {
    const skyhook = skyhookWith({ spec: { ...spec, interruptionBudget: { percent: 50 } } })
    const limited = statusOf(nodes('complete', 'in_progress', 'waiting', 'waiting', 'waiting'), { skyhook })
    expect(limited.compartmentStatuses).toEqual({
      __default__: { matched: 5, ceiling: 2, inProgress: 1, completed: 1, progressPercent: 20 },
    })
    expect(statusOf(nodes('waiting')).compartmentStatuses).toBeUndefined()
  })

  test('a Skyhook without any budget has the compartment of the default', () => {
    const skyhook = skyhookWith({ spec: { ...spec, interruptionBudget: {} } })
    const reports = nodes('complete', 'in_progress', 'waiting', 'waiting', 'waiting')
    expect(statusOf(reports, { skyhook, defaultBudget: { percent: 50 } }).compartmentStatuses).toEqual({
      __default__: { matched: 5, ceiling: 2, inProgress: 1, completed: 1, progressPercent: 20 },
    })
    const own = skyhookWith({ spec: { ...spec, interruptionBudget: { count: 3 } } })
    expect(statusOf(reports, { skyhook: own, defaultBudget: { percent: 50 } }).compartmentStatuses).toMatchObject({
      __default__: { ceiling: 3 },
    })
  })

  test('failing nodes that hold the whole default budget stall the rollout', () => {
    const status = statusOf(nodes('waiting', failing), { defaultBudget: { count: 1 } })
    expect(conditionText(status, 'Stalled')).toBe('True FailedNodesHoldBudget')
  })

  test('a stopped rollout is reported with batch and nodes', () => {
    const policy: PolicyKnowledge = {
      state: 'found',
      uid: 'p',
      generation: 1,
      spec: { default: { budget: { count: 2 }, strategy: { fixed: {} } } },
    }
    const batch = {
      epoch: 9,
      currentBatch: 4,
      size: 1,
      completed: 3,
      failed: 2,
      consecutiveFailures: 2,
      stopped: true,
      lastBatchSize: 1,
      lastBatchFailed: true,
    }
    const ledger = { skyhookUID: 'demo-uid', compartments: { __default__: { matched: 2, completed: 0, batch } } }
    const status = statusOf(nodes(failing, 'waiting'), { skyhook: paced, policy, ledger: ledger as unknown as Ledger })
    expect(status.compartmentStatuses).toEqual({
      __default__: {
        matched: 2,
        ceiling: 2,
        inProgress: 0,
        completed: 0,
        progressPercent: 0,
        batchState: {
          currentBatch: 4,
          consecutiveFailures: 2,
          completedNodes: 3,
          failedNodes: 2,
          shouldStop: true,
          lastBatchSize: 1,
          lastBatchFailed: true,
        },
      },
    })
    expect(conditionOf(status, 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'RolloutStopped',
      message:
        'compartment __default__: batch 3 was failed batch 2 in a row; failing: n1; ' +
        'to continue, fix the package and set the annotation skyhook.nvidia.com/reset-batches to another text',
    })
  })
})

describe('nodes that were at work and whose agents are silent', () => {
  const down: NodeReport = {
    status: 'in_progress',
    entries: [entry({ stage: 'interrupt', state: 'in_progress' })],
    reason: ['RebootPending', 'the host is shutting down'],
    annotations: { 'skyhook.nvidia.com/cordon_demo': 'true' },
  }
  const silent = allAgents('ready', { n1: 'silent' })
  const budgetOf = (count: number): Skyhook => skyhookWith({ spec: { ...spec, interruptionBudget: { count } } })
  const waiting: NodeReport = { status: 'waiting', reason: ['WaitingForSlot', 'the budget is used up'] }
  const policy: PolicyKnowledge = {
    state: 'found',
    uid: 'p',
    generation: 1,
    spec: { default: { budget: { count: 3 }, strategy: { fixed: { initialBatch: 1 } } } },
  }
  const batch = {
    epoch: 1,
    currentBatch: 1,
    size: 1,
    completed: 0,
    failed: 0,
    consecutiveFailures: 0,
    stopped: false,
    lastBatchSize: 0,
    lastBatchFailed: false,
  }
  const ledger = {
    skyhookUID: 'demo-uid',
    compartments: { __default__: { matched: 3, completed: 0, batch } },
  } as unknown as Ledger
  const inBatch: Scenario = { skyhook: paced, policy, ledger, agents: silent }
  const nextBatch: NodeReport = { status: 'waiting', reason: ['WaitingForBatch', 'the batch is not finished'] }
  const wayOut = '; bring the nodes and their agents back, or delete the Nodes of hosts that are gone'

  test.each<[string, CensusNode[], Scenario, string]>([
    [
      'hold the whole budget',
      nodes(down, waiting, waiting),
      { skyhook: budgetOf(1), agents: silent },
      'nodes whose agents are silent hold the whole budget of 1: n1',
    ],
    [
      'hold the whole budget together with failing ones',
      nodes(down, failing, waiting),
      { skyhook: budgetOf(2), agents: silent },
      'nodes whose agents are silent hold the whole budget of 2: n1; failing: n2',
    ],
    [
      'keep the batch open',
      nodes(down, nextBatch, nextBatch),
      inBatch,
      'compartment __default__: nodes whose agents are silent keep the batch open: n1',
    ],
    ['are the last ones', nodes(down, 'complete'), { agents: silent }, 'at work and silent: n1'],
  ])('silent nodes stall a rollout if they %s', (_, all, scenario, message) => {
    const status = statusOf(all, scenario)
    expect(conditionOf(status, 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'SilentNodesKeepSlots',
      message: `${message}${wayOut}`,
    })
    expect(conditionText(status, 'Reconciling')).toBe('False Stalled')
  })

  test.each<[string, CensusNode[], Scenario]>([
    ['a slot is left', nodes(down, waiting), { skyhook: budgetOf(2), agents: silent }],
    ['nobody else is unfinished but a node at work', nodes(down, 'in_progress'), { agents: silent }],
    ['nobody limits the others', nodes(down, 'waiting'), { agents: silent }],
    ['they have not been silent for long', nodes(down, waiting), { skyhook: budgetOf(1) }],
    ['they had not started', nodes('waiting', waiting), { skyhook: budgetOf(1), agents: silent }],
    ['another node of the batch continues', nodes(down, 'in_progress', nextBatch), inBatch],
    ['the batch has room', nodes(down, waiting), inBatch],
    [
      'the Skyhook is paused',
      nodes(down, 'complete'),
      { skyhook: skyhookWith({ metadata: { annotations: { [pauseKey]: 'true' } } }), agents: silent },
    ],
  ])('silent nodes do not stall a rollout while %s', (_, all, scenario) => {
    expect(conditionText(statusOf(all, scenario), 'Stalled')).toBe('False NotStalled')
  })

  test('a node at work that lacks its image keeps the batch open, and one whose stage has failed does not', () => {
    const ready = { ...inBatch, agents: allAgents() }
    const held: NodeReport = { ...missingImage(2), status: 'in_progress', entries: down.entries ?? [] }
    expect(conditionOf(statusOf(nodes(held, nextBatch), ready), 'Stalled')).toMatchObject({
      reason: 'FailedNodesHoldBudget',
      message: 'compartment __default__: failing nodes keep the batch open: n1',
    })
    expect(conditionText(statusOf(nodes(failing, nextBatch), ready), 'Stalled')).toBe('False NotStalled')
  })
})

describe('Ready, Reconciling and Stalled', () => {
  /** The status before has said for so long that its policy does not exist. */
  const pacedWithout = (minutes: number): Skyhook => ({
    ...paced,
    status: {
      conditions: [
        {
          type: 'skyhook.nvidia.com/DeploymentPolicyNotFound',
          status: 'True',
          reason: 'DeploymentPolicyNotFound',
          message: '',
          lastTransitionTime: minutesAgo(minutes),
        },
      ],
    },
  })
  const annotated = (key: string): Skyhook => skyhookWith({ metadata: { annotations: { [key]: 'true' } } })
  const broken = { packages: { a: { version: '1', image: 'a', dependsOn: { b: '1' } } } }
  const deleting = skyhookWith({
    metadata: { deletionTimestamp: '2026-11-20T13:59:00Z', annotations: { [pauseKey]: 'true' } },
  })
  const waitsFor = (names: string[], more: object = {}): FinalizerPlan => ({
    action: 'wait',
    nodes: names,
    skipped: [],
    recheckAtMs: Infinity,
    looksAtMs: Infinity,
    ...more,
  })

  test.each<[string, CensusNode[], Scenario, [ready: string, reconciling: string, stalled: string]]>([
    [
      'complete on all nodes',
      nodes('complete', 'complete'),
      {},
      ['True Complete', 'False Complete', 'False NotStalled'],
    ],
    ['without selected nodes', [], {}, ['True NoNodeSelected', 'False Complete', 'False NotStalled']],
    [
      'complete and its spec just changed',
      nodes('complete'),
      { isSpecPropagating: true },
      ['False SpecChanged', 'True SpecChanged', 'False NotStalled'],
    ],
    [
      'working',
      nodes('complete', 'in_progress', failing),
      {},
      ['False InProgress', 'True InProgress', 'False NotStalled'],
    ],
    ['waiting', nodes('complete', 'waiting'), {}, ['False Waiting', 'True Waiting', 'False NotStalled']],
    ['failing', nodes('complete', failing), {}, ['False NodesErroring', 'False Stalled', 'True NodesErroring']],
    [
      'failing for the first time',
      nodes('complete', failedOnce),
      {},
      ['False NodesErroring', 'True NodesErroring', 'False NotStalled'],
    ],
    [
      'failing on one node while another one may start',
      nodes('waiting', failing),
      {},
      ['False NodesErroring', 'True NodesErroring', 'False NotStalled'],
    ],
    [
      'failing on one node and for the first time on another one',
      nodes(failedOnce, failing),
      {},
      ['False NodesErroring', 'True NodesErroring', 'False NotStalled'],
    ],
    [
      'failing on one node while no other one may start',
      nodes('waiting', failing),
      { skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 0 } } }) },
      ['False NodesErroring', 'False Stalled', 'True NodesErroring'],
    ],
    ['failing and retrying', nodes(failing, retrying), {}, ['False InProgress', 'False Stalled', 'True NodesErroring']],
    [
      'retrying after its first failure',
      nodes({ ...retrying, entries: [entry({ stage: 'apply', state: 'in_progress', restarts: 1 })] }),
      {},
      ['False InProgress', 'True InProgress', 'False NotStalled'],
    ],
    [
      'waiting for an image that the registry has not had for a minute',
      nodes(missingImage(1)),
      {},
      ['False Waiting', 'True Waiting', 'False NotStalled'],
    ],
    [
      'waiting for an image that the registry has not had for two minutes',
      nodes('complete', missingImage(2)),
      {},
      ['False Waiting', 'False Stalled', 'True NodesErroring'],
    ],
    [
      'waiting for a registry that has not answered for an hour',
      nodes(missingImage(60, 'unreachable')),
      {},
      ['False Waiting', 'True Waiting', 'False NotStalled'],
    ],
    [
      'paused while a node fails',
      nodes(failing, 'paused'),
      { skyhook: annotated(pauseKey) },
      ['False Paused', 'False Paused', 'False NotStalled'],
    ],
    [
      'failing and its spec was just corrected',
      nodes('complete', failing),
      { isSpecPropagating: true, mayFailuresBeOld: true },
      ['False SpecChanged', 'True SpecChanged', 'False NotStalled'],
    ],
    [
      'retrying and its spec was just corrected',
      nodes('complete', { ...failing, status: 'in_progress' }),
      { isSpecPropagating: true, mayFailuresBeOld: true },
      ['False SpecChanged', 'True SpecChanged', 'False NotStalled'],
    ],
    [
      'held by failures and its spec was just corrected',
      nodes('waiting', failing),
      {
        skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 1 } } }),
        isSpecPropagating: true,
        mayFailuresBeOld: true,
      },
      ['False SpecChanged', 'True SpecChanged', 'False NotStalled'],
    ],
    [
      'blocked and its spec was just corrected',
      nodes('complete', tainted),
      { isSpecPropagating: true, mayFailuresBeOld: true },
      ['False SpecChanged', 'True SpecChanged', 'False NotStalled'],
    ],
    ['blocked', nodes('complete', tainted), {}, ['False NodesBlocked', 'False Stalled', 'True NodesBlocked']],
    [
      'blocked, and its nodes do not say yet by what',
      nodes('blocked'),
      {},
      ['False NodesBlocked', 'True NodesBlocked', 'False NotStalled'],
    ],
    [
      'without answering agents',
      nodes('complete', 'in_progress'),
      { agents: allAgents('ready', { n2: 'silent' }) },
      ['Unknown NodesUnknown', 'True NodesUnknown', 'False NotStalled'],
    ],
    [
      'paused',
      nodes('waiting'),
      { skyhook: annotated(pauseKey) },
      ['False Paused', 'False Paused', 'False NotStalled'],
    ],
    [
      'disabled',
      nodes('waiting'),
      { skyhook: annotated(disableKey) },
      ['False Disabled', 'False Disabled', 'False NotStalled'],
    ],
    [
      'paused and complete',
      nodes('complete'),
      { skyhook: annotated(pauseKey) },
      ['True Complete', 'False Complete', 'False NotStalled'],
    ],
    [
      'invalid',
      nodes('complete'),
      { skyhook: skyhookWith({ spec: broken }) },
      ['False InvalidSpec', 'False Stalled', 'True InvalidSpec'],
    ],
    [
      'under a DeploymentPolicy that has not existed for two minutes',
      nodes('blocked'),
      { skyhook: pacedWithout(2), policy: { state: 'missing' } },
      ['False NodesBlocked', 'False Stalled', 'True DeploymentPolicyNotFound'],
    ],
    [
      'under a DeploymentPolicy that has not existed for a minute',
      nodes('blocked'),
      { skyhook: pacedWithout(1), policy: { state: 'missing' } },
      ['False NodesBlocked', 'True NodesBlocked', 'False NotStalled'],
    ],
    [
      'complete under a DeploymentPolicy that does not exist',
      nodes({ of: paced.spec }),
      { skyhook: paced, policy: { state: 'missing' } },
      ['True Complete', 'False Complete', 'False NotStalled'],
    ],
    [
      'limited by a budget that a failing node holds while it retries',
      nodes(retrying, 'waiting'),
      { skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 1 } } }) },
      ['False InProgress', 'False Stalled', 'True FailedNodesHoldBudget'],
    ],
    [
      'limited by a budget that failing nodes hold',
      nodes(failing, 'waiting'),
      { skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 1 } } }) },
      ['False NodesErroring', 'False Stalled', 'True FailedNodesHoldBudget'],
    ],
    [
      'limited by a budget of which a node that has failed once holds all',
      nodes(failedOnce, 'waiting'),
      { skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 1 } } }) },
      ['False NodesErroring', 'True NodesErroring', 'False NotStalled'],
    ],
    [
      'limited by a budget while a node fails before it has a slot',
      nodes(
        {
          status: 'erroring',
          entries: [],
          reason: ['InvalidPackage', 'config.json: modes: unknown mode', { since: minutesAgo(3) }],
        },
        'waiting',
      ),
      { skyhook: skyhookWith({ spec: { ...spec, interruptionBudget: { count: 1 } } }) },
      ['False NodesErroring', 'True NodesErroring', 'False NotStalled'],
    ],
    [
      'trying again on one node and working on another',
      nodes(retrying, 'in_progress'),
      {},
      ['False InProgress', 'True InProgress', 'False NotStalled'],
    ],
    [
      'under a DeploymentPolicy that nobody may read',
      nodes(''),
      { skyhook: paced, policy: { state: 'unknown', why: 'HTTP 403', isRefused: true } },
      ['False NodesBlocked', 'False Stalled', 'True DeploymentPolicyUnknown'],
    ],
    [
      'under a DeploymentPolicy that does not exist, before its nodes say so',
      nodes(''),
      { skyhook: pacedWithout(2), policy: { state: 'missing' } },
      ['False NodesBlocked', 'False Stalled', 'True DeploymentPolicyNotFound'],
    ],
    [
      'being deleted',
      nodes('complete'),
      { skyhook: skyhookWith({ metadata: { deletionTimestamp: 'x' } }), finalizer: waitsFor(['n1']) },
      ['False Deleting', 'True Deleting', 'False NotStalled'],
    ],
    [
      'paused while being deleted',
      nodes('complete'),
      { skyhook: deleting, finalizer: waitsFor(['n1'], { blockedBy: 'pause' }) },
      ['False Deleting', 'False Stalled', 'True DeletionBlocked'],
    ],
    [
      'being deleted while the nodes that are left are ignored',
      nodes('complete'),
      {
        skyhook: skyhookWith({ metadata: { deletionTimestamp: 'x' } }),
        finalizer: waitsFor(['n1'], { blockedBy: 'ignore' }),
      },
      ['False Deleting', 'False Stalled', 'True DeletionBlocked'],
    ],
  ])('Ready, Reconciling and Stalled agree when the Skyhook is %s', (_, all, scenario, expected) => {
    const status = statusOf(all, scenario)
    expect(['Ready', 'Reconciling', 'Stalled'].map((type) => conditionText(status, type))).toEqual(expected)
    for (const type of ['Ready', 'Reconciling', 'Stalled'])
      expect(conditionOf(status, type)?.observedGeneration).toBe(3)
  })

  test('the message of Stalled names a node that waits for its image, and the answer of the registry', () => {
    expect(conditionOf(statusOf(nodes('complete', missingImage(2))), 'Stalled')?.message).toBe(
      '1 of 2 nodes; erroring: n2 (ImagePull: the registry has no such image)',
    )
  })

  test('the message of Stalled does not change while failing nodes retry', () => {
    const between = conditionOf(statusOf(nodes(failing, 'complete')), 'Stalled')
    const during = conditionOf(statusOf(nodes({ ...failing, status: 'in_progress' }, 'complete')), 'Stalled')
    expect(during).toEqual(between)
  })

  test('the message of Ready names nodes, their reasons and what failed', () => {
    const status = statusOf(
      nodes('complete', failing, { status: 'waiting', reason: ['WaitingForSlot', 'the budget of 1 node is used up'] }),
    )
    expect(conditionOf(status, 'Ready')?.message).toBe(
      '1 of 3 nodes complete; erroring: n2 (StepFailed: package tuning 1.1.0: apply.sh ended with 1); waiting: ' +
        'n3 (WaitingForSlot)',
    )
  })

  test('Ready is never True while a selected node is not complete for this spec', () => {
    const word = fc.constantFrom('complete', 'in_progress', 'erroring', 'blocked', 'waiting', 'unknown', 'paused', '')
    const reports = fc.record({
      status: word,
      current: fc.boolean(),
      agent: fc.constantFrom('ready', 'unready', 'silent' as const),
    })
    fc.assert(
      fc.property(fc.array(reports, { maxLength: 6 }), fc.boolean(), (all, isSpecPropagating) => {
        const agents = allAgents('ready', Object.fromEntries(all.map(({ agent }, at) => [`n${at + 1}`, agent])))
        const list = nodes(
          ...all.map(({ status, current }) => ({
            status,
            ...(current ? {} : { companion: { applied: 'of before' } }),
          })),
        )
        const proven = all.every(({ status, current, agent }) => status === 'complete' && current && agent !== 'silent')
        expect(conditionOf(statusOf(list, { agents, isSpecPropagating }), 'Ready')?.status === 'True').toBe(
          proven && !isSpecPropagating,
        )
      }),
    )
  })
})

describe('the conditions of the operator', () => {
  const type = (name: string): string => `skyhook.nvidia.com/${name}`

  test('taints and ignored nodes are reported in the words of the operator', () => {
    const untoleratedNodes: NodeReport = {
      status: 'blocked',
      reason: ['TaintNotTolerated', 'the node has gpu:NoSchedule'],
    }
    const status = statusOf(nodes(untoleratedNodes, untoleratedNodes, { labels: { [ignoreLabel]: 'true' } }))
    expect(conditionOf(status, type('TaintNotTolerable'))).toMatchObject({
      status: 'True',
      reason: 'TaintNotTolerable',
      message: 'Node [n1, n2] has taints that are not tolerable. Skipping.',
    })
    expect(conditionOf(status, type('NodesIgnored'))).toMatchObject({
      status: 'True',
      message: 'Node [n3] has ignore label set. Skipping.',
    })
    const free = statusOf(nodes('complete'))
    expect(conditionOf(free, type('TaintNotTolerable'))).toMatchObject({
      status: 'False',
      message: 'All nodes have tolerable taints.',
    })
    expect(conditionOf(free, type('NodesIgnored'))).toMatchObject({
      status: 'False',
      message: 'No nodes have ignore label set.',
    })
  })

  test('conditions name at most twenty nodes', () => {
    const untoleratedNodes: NodeReport = { status: 'blocked', reason: ['TaintNotTolerated', 'x'] }
    const status = statusOf(nodes(...Array.from({ length: 700 }, () => untoleratedNodes)))
    const { message } = conditionOf(status, type('TaintNotTolerable')) as Condition
    expect(message.match(/n\d+/g)).toHaveLength(20)
    expect(message).toContain('and 680 more')
    for (const condition of status.conditions ?? [])
      expect((condition.message.match(/\bn\d+/g) ?? []).length).toBeLessThanOrEqual(20)
  })

  test('no message is longer than the resource definition allows, even if a Node reports a long text', () => {
    const text = 'x'.repeat(40_000)
    const compartments = Array.from({ length: 64 }, (_, at) => `${at}-${'c'.repeat(50)}`)
    const policy: PolicyKnowledge = {
      state: 'found',
      uid: 'p',
      generation: 1,
      spec: {
        default: { budget: { count: 1 }, strategy: { fixed: {} } },
        compartments: compartments.map((name) => ({
          name,
          selector: { matchLabels: { group: name } },
          budget: { count: 1 },
        })),
      },
    }
    const all = compartments.flatMap((group, at) => [
      nodeReporting(`a${at}-${'n'.repeat(200)}`, {
        ...failing,
        reason: ['StepFailed', text],
        labels: { group },
        entries: [entry({ name: text, stage: 'uninstall', state: 'erroring', restarts: 3 })],
      }),
      nodeReporting(`b${at}-${'n'.repeat(200)}`, { status: 'waiting', reason: [text, text], labels: { group } }),
      nodeReporting(`c${at}-${'n'.repeat(200)}`, {
        status: 'in_progress',
        reason: ['DrainBlocked', text],
        labels: { group },
        entries: [entry({ name: text, stage: 'apply', state: 'in_progress' })],
      }),
    ])
    const { conditions = [] } = statusOf(all, { skyhook: paced, policy })
    expect(conditions.map(({ reason }) => reason)).toContain('FailedNodesHoldBudget')
    expect(conditions.filter(({ message }) => message.length > 4_096)).toEqual([])
    expect(conditions.filter(({ reason }) => reason.length > 100)).toEqual([])
  })

  test('a transition is reported from the second status on and stays until the next one', () => {
    const first = statusOf(nodes('waiting'))
    expect(conditionOf(first, type('Transition'))).toBeUndefined()
    const second = statusOf(nodes('in_progress'), { skyhook: skyhookWith({ status: first }) })
    expect(conditionOf(second, type('Transition'))).toMatchObject({
      status: 'False',
      reason: 'in_progress',
      message: 'Transitioned [waiting] -> [in_progress]',
    })
    const third = statusOf(nodes('in_progress', 'waiting'), { skyhook: skyhookWith({ status: second }) })
    expect(conditionOf(third, type('Transition'))).toEqual(conditionOf(second, type('Transition')))
    const last = statusOf(nodes('complete'), { skyhook: skyhookWith({ status: third }) })
    expect(conditionOf(last, type('Transition'))).toMatchObject({ status: 'True', reason: 'complete' })
  })

  test('ApplyPackage names the latest start and stays', () => {
    const launching: NodeReport = { status: 'in_progress', entries: [entry({ stage: 'apply', state: 'in_progress' })] }
    const first = statusOf(nodes('waiting', launching))
    expect(conditionOf(first, type('ApplyPackage'))).toMatchObject({
      status: 'True',
      reason: 'ApplyPackage',
      message: 'Applying package [tuning:1.1.0] to node [n2]',
    })
    const second = statusOf(nodes(launching, launching), { skyhook: skyhookWith({ status: first }) })
    expect(conditionOf(second, type('ApplyPackage'))?.message).toContain('node [n1]')
    const third = statusOf(nodes('complete', launching), { skyhook: skyhookWith({ status: second }) })
    expect(conditionOf(third, type('ApplyPackage'))).toEqual(conditionOf(second, type('ApplyPackage')))
  })

  test('Ready counts the nodes that an earlier Skyhook of the name completed, and says how to run them again', () => {
    const report = { companion: { foundComplete: true } }
    const message = conditionOf(statusOf(nodes(report, 'complete', report)), 'Ready')?.message
    expect(message).toBe(
      '3 of 3 nodes complete; 2 from before this Skyhook was created: remove the annotation ' +
        'skyhook.nvidia.com/nodeState_demo of a node to run its packages again',
    )
    expect(conditionOf(statusOf(nodes('complete')), 'Ready')?.message).toBe('1 of 1 nodes complete')
  })

  test('conditions of others stay, and one about a policy goes with the policy', () => {
    const at = { status: 'True', reason: 'X', message: 'x', lastTransitionTime: '2026-01-01T00:00:00Z' } as const
    const before = {
      conditions: [
        { type: 'example.com/Theirs', ...at },
        { type: type('DeploymentPolicyNotFound'), ...at },
      ],
    }
    const status = statusOf([], { skyhook: skyhookWith({ status: before }) })
    expect(conditionOf(status, 'example.com/Theirs')).toEqual({ type: 'example.com/Theirs', ...at })
    expect(conditionOf(status, type('DeploymentPolicyNotFound'))).toBeUndefined()
    const missing = statusOf([], { skyhook: paced, policy: { state: 'missing' } })
    expect(conditionOf(missing, type('DeploymentPolicyNotFound'))).toMatchObject({
      status: 'True',
      message: 'DeploymentPolicy "careful" not found',
    })
  })
})

describe('time', () => {
  const step = fc.constantFrom<string | NodeReport>('complete', 'in_progress', 'waiting', failing, 'blocked', '')
  const states = fc.array(fc.array(step, { maxLength: 4 }), { minLength: 1, maxLength: 6 })

  test('the same count changes nothing', () => {
    fc.assert(
      fc.property(states, (history) => {
        let status: SkyhookStatus | undefined
        for (const [turn, reports] of history.entries()) {
          const skyhook = skyhookWith(status === undefined ? {} : { status })
          status = statusOf(nodes(...reports), { skyhook, nowMs: nowMs + turn * 10_000 })
        }
        const again = statusOf(nodes(...(history.at(-1) ?? [])), {
          skyhook: skyhookWith({ status: status ?? {} }),
          nowMs: nowMs + 10 ** 9,
        })
        expect(again).toEqual(status)
      }),
    )
  })

  test('a time of transition changes exactly when the status of its condition does', () => {
    fc.assert(
      fc.property(states, (history) => {
        let before: SkyhookStatus | undefined
        for (const [turn, reports] of history.entries()) {
          const skyhook = skyhookWith(before === undefined ? {} : { status: before })
          const after = statusOf(nodes(...reports), { skyhook, nowMs: nowMs + (turn + 1) * 10_000 })
          const wrong = (after.conditions ?? []).filter(({ type, status, lastTransitionTime }) => {
            const was = conditionOf(before, type)
            return was !== undefined && (was.lastTransitionTime === lastTransitionTime) !== (was.status === status)
          })
          expect(wrong).toEqual([])
          before = after
        }
      }),
    )
  })

  test('a status is urgent when a condition changes or holds for another generation, not when nodes make progress', () => {
    const working = statusOf(nodes('in_progress', 'waiting'))
    const later = (reports: (string | NodeReport)[], more: Parameters<typeof skyhookWith>[0] = {}): SkyhookStatus =>
      statusOf(nodes(...reports), { skyhook: skyhookWith({ status: working, ...more }) })
    expect(isUrgent(undefined, working)).toBe(true)
    expect(isUrgent(working, later(['complete', 'in_progress']))).toBe(false)
    expect(isUrgent(working, later(['waiting', 'in_progress']))).toBe(false)
    expect(isUrgent(working, later(['complete', 'complete']))).toBe(true)
    expect(isUrgent(working, later([failing, 'complete']))).toBe(true)
    expect(isUrgent(working, later(['in_progress', 'waiting'], { metadata: { generation: 4 } }))).toBe(true)
  })
})

describe('the size', () => {
  const fleet = (count: number, packages: number, reports: (at: number) => string): CensusNode[] =>
    Array.from({ length: count }, (_, at) => {
      const entries = Array.from({ length: packages }, (_, number) => entry({ name: `package-${number}` }))
      return nodeReporting(`ip-10-0-${at}.eu-central-1.compute.internal`, { status: reports(at), entries })
    })
  const sizeOf = (status: SkyhookStatus): number => Buffer.byteLength(JSON.stringify(status))

  test('every node is shown while that fits', () => {
    const status = statusOf(fleet(250, 2, () => 'in_progress'))
    expect(Object.keys(status.nodeStatus ?? {})).toHaveLength(250)
    expect(status.nodeStateTruncated).toBe(false)
  })

  test.each([
    [5_000, 2],
    [5_000, 64],
    [250, 64],
  ])('%i nodes with %i packages stay below 128 KiB, the worst nodes shown, all of them counted', (count, packages) => {
    const status = statusOf(
      fleet(count, packages, (at) => (at % 7 === 0 ? 'complete' : at % 50 === 1 ? 'erroring' : 'waiting')),
    )
    expect(sizeOf(status)).toBeLessThan(128 * 1024)
    expect(status.nodeStateTruncated).toBe(true)
    const shown = Object.values(status.nodeStatus ?? {})
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.length).toBeLessThanOrEqual(100)
    expect(shown[0]).toBe('erroring')
    expect(shown).not.toContain('complete')
    expect(Object.keys(status.nodeState ?? {})).toEqual(Object.keys(status.nodeStatus ?? {}))
    expect(status.nodesSelected).toBe(count)
  })

  /** `fieldsV1` of an object whose definition tracks each field, as the operator's does. */
  const fieldsOf = (value: unknown): unknown => {
    if (Array.isArray(value)) return Object.fromEntries(value.map((one) => [`k:{"type":"${at(one)}"}`, fieldsOf(one)]))
    if (typeof value !== 'object' || value === null) return {}
    return {
      '.': {},
      ...Object.fromEntries(Object.entries(value).map(([key, field]) => [`f:${key}`, fieldsOf(field)])),
    }
  }
  const at = (condition: unknown): string => (condition as Condition).type

  test.each([120, 250, 1_000])('%i nodes with 5 packages stay below 256 KiB with their managedFields', (count) => {
    const status = statusOf(fleet(count, 5, () => 'erroring'))
    expect(Object.keys(status.nodeStatus ?? {}).length).toBeGreaterThanOrEqual(100)
    expect(sizeOf(status) + Buffer.byteLength(JSON.stringify(fieldsOf(status)))).toBeLessThan(256 * 1024)
  })

  test('a fleet that is complete shows no node when it is too large', () => {
    const status = statusOf(fleet(5_000, 1, () => 'complete'))
    expect(status).toMatchObject({
      nodeState: {},
      nodeStatus: {},
      nodeStateTruncated: true,
      completeNodes: '5000/5000',
      status: 'complete',
    })
  })

  test('a node that a truncated map did not show is not taken for a start', () => {
    const launching = entry({ stage: 'apply', state: 'in_progress' })
    const before = { nodeStateTruncated: true, nodeState: { n1: {} } }
    const status = statusOf([nodeReporting('n2', { status: 'in_progress', entries: [launching] })], {
      skyhook: skyhookWith({ status: before }),
    })
    expect(conditionOf(status, 'skyhook.nvidia.com/ApplyPackage')).toBeUndefined()
  })
})

test('the plan of the finalizer reaches the condition', () => {
  const withUninstall = { packages: { tuning: { version: '1.1.0', image: 'x', uninstall: { enabled: true } } } }
  const skyhook = skyhookWith({
    spec: withUninstall,
    metadata: { deletionTimestamp: 'x', finalizers: ['skyhook.nvidia.com/skyhook'] },
  })
  const all = [nodeReporting('n1', { of: withUninstall }), nodeReporting('n2', { of: withUninstall, entries: [] })]
  const counts = countsOf(skyhook, all)
  const look = { slots: [], looks: 1, atMs: 0 }
  const finalizer = planFinalizer({
    skyhook,
    counts,
    isDead: () => false,
    deletionObservedAtMs: 0,
    look,
    nowMs: 5_000,
  })
  const status = nextStatus({ skyhook, counts, finalizer, isSpecPropagating: false, mayFailuresBeOld: false, nowMs })
  expect(conditionOf(status, 'Ready')?.message).toBe('the Skyhook is being deleted; still uninstalling: n1')
})

test('a status that would stop NodeWright is not written where its group is served', () => {
  const left = (status: string) => ({ ...skyhookWith(), status: { status } })
  const textOf = (report: string, skyhook: Skyhook, isNodeWrightServed: boolean): unknown =>
    statusOf(nodes(report), { skyhook, isNodeWrightServed }).status
  for (const report of ['waiting', 'in_progress', 'erroring', 'blocked']) {
    expect(textOf(report, left('complete'), false)).toBe(report)
    expect(textOf(report, left('complete'), true)).toBe('complete')
    expect(textOf(report, skyhookWith(), true)).toBeUndefined()
  }
  expect(textOf('complete', left('in_progress'), true)).toBe('complete')
})
