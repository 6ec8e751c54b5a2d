import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  allAgents,
  countsOf,
  entry,
  nodeReporting,
  type NodeReport,
  skyhookWith,
  spec,
} from '../../../test/kit/objects/census-objects.ts'
import { seriesLine, seriesText } from '../../../test/kit/objects/series-text.ts'
import type { Ledger } from '../../lease/ledger.ts'
import { cordonKey, statusKey } from '../../schemas/annotations.ts'
import type { FleetMetricName } from '../../schemas/catalogue/fleet-metrics.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import { entryStates, nodeStatuses, type Skyhook, stageNames } from '../../schemas/skyhook.ts'
import { censusNode } from '../model/cluster-view.ts'
import { clusterSeries, skyhookSeries } from './fleet-series.ts'
import type { CensusNode } from '../model/node-facts.ts'

type Scene = {
  skyhook?: Skyhook
  nodes?: readonly (NodeReport & { readonly name?: string })[]
  agents?: ReturnType<typeof allAgents>
  policy?: PolicyKnowledge
  ledger?: Ledger
}

function linesOf({ skyhook = skyhookWith(), nodes = [], agents, policy, ledger }: Scene): string[] {
  const reporting = nodes.map((report, at) => nodeReporting(report.name ?? `n${at + 1}`, report))
  return seriesText(
    skyhookSeries({
      skyhook,
      counts: countsOf(skyhook, reporting, agents, policy),
      ledger,
      nodes: new Map(reporting.map((node) => [node.name, node])),
    }),
  )
}
const only = (lines: readonly string[], name: FleetMetricName): string[] =>
  lines.filter((line) => line.startsWith(`${name}{`)).map((line) => line.slice(name.length))
const nonZero = (lines: readonly string[]): string[] => lines.filter((line) => !line.endsWith(' 0'))
const of = { skyhook_name: 'demo' }

describe('the status and the nodes of a Skyhook', () => {
  test('every status has a series, and exactly the current one is 1', () => {
    const lines = only(linesOf({ nodes: [{ status: 'in_progress' }, {}] }), 'skyhook_status')
    expect(lines).toHaveLength(nodeStatuses.length)
    expect(nonZero(lines)).toEqual(['{skyhook_name="demo",status="in_progress"} 1'])
  })

  test('nodes are counted in the status that they have for the current spec', () => {
    const lines = linesOf({
      nodes: [{}, { of: { packages: {} } }, { status: '' }, { status: 'erroring' }],
      agents: allAgents('ready', { n4: 'silent' }),
    })
    expect(nonZero(only(lines, 'skyhook_node_status_count'))).toEqual([
      '{skyhook_name="demo",status="unknown"} 1',
      '{skyhook_name="demo",status="complete"} 1',
      '{skyhook_name="demo",status="waiting"} 2',
    ])
    expect(lines).toContain(seriesLine('skyhook_node_target_count', of, 4))
  })

  test('a Skyhook that selects no node still has all its series', () => {
    const lines = linesOf({})
    expect(lines).toContain(seriesLine('skyhook_node_target_count', of, 0))
    expect(only(lines, 'skyhook_node_status_count')).toHaveLength(nodeStatuses.length)
    expect(only(lines, 'skyhook_package_state_count')).toHaveLength(entryStates.length)
    expect(only(lines, 'skyhook_rollout_progress_percent')).toHaveLength(1)
  })
})

test('the generation of a Skyhook has a series: each edit of the spec raises it', () => {
  const generations = (generation: number): string[] =>
    only(linesOf({ skyhook: skyhookWith({ metadata: { generation } }) }), 'skyhookd_fleet_generation')
  expect([3, 4].flatMap(generations)).toEqual(['{skyhook_name="demo"} 3', '{skyhook_name="demo"} 4'])
})

describe('the packages', () => {
  const tuning = { ...of, package_name: 'tuning', package_version: '1.1.0' }

  test('nodes in one state and several stages count in all of them', () => {
    const lines = linesOf({
      nodes: ['apply', 'config', 'config'].map((stage) => ({
        status: 'in_progress',
        entries: [entry({ stage, state: 'in_progress', restarts: 2 })],
      })),
    })
    expect(nonZero(lines)).toEqual(
      expect.arrayContaining([
        seriesLine('skyhook_package_state_count', { ...tuning, state: 'in_progress' }, 3),
        seriesLine('skyhook_package_stage_count', { ...tuning, stage: 'apply' }, 1),
        seriesLine('skyhook_package_stage_count', { ...tuning, stage: 'config' }, 2),
        seriesLine('skyhook_package_restarts_count', tuning, 6),
      ]),
    )
  })

  test('an old version has series for as long as a node has it', () => {
    const old = { status: 'in_progress', entries: [entry({ version: '1.0.0' })] }
    const versions = (nodes: readonly NodeReport[]): string[] =>
      only(linesOf({ nodes }), 'skyhook_package_restarts_count')
    expect(versions([old, {}])).toEqual([
      '{skyhook_name="demo",package_name="tuning",package_version="1.1.0"} 0',
      '{skyhook_name="demo",package_name="tuning",package_version="1.0.0"} 0',
    ])
    expect(versions([{}, {}])).toEqual(['{skyhook_name="demo",package_name="tuning",package_version="1.1.0"} 0'])
  })

  test('made-up entries of a Node do not add series without bound', () => {
    const entries = Array.from({ length: 500 }, (_, at) => entry({ version: `9.${at}.0` }))
    const long = entry({ name: 'x'.repeat(300) })
    const lines = linesOf({ nodes: [{ entries: [...entries, long] }, { entries: [entry({ version: '9.77.0' })] }] })
    const versions = only(lines, 'skyhook_package_restarts_count')
    expect(versions).toHaveLength(1 + 50)
    expect(versions[1]).toContain('9.77.0') // on most nodes
    expect(lines.filter((line) => line.includes('xxx'))).toEqual([])
  })
})

describe('the rollout', () => {
  const legacy = { policy_name: 'legacy', compartment_name: '__default__', strategy: 'fixed' }
  const nodes = [{}, { status: 'in_progress' }, { status: 'waiting' }]

  test.for([
    { budget: undefined, ceiling: 3 },
    { budget: { count: 2 }, ceiling: 2 },
    { budget: { percent: 34 }, ceiling: 1 },
  ])('without a policy, budget $budget has the ceiling $ceiling', ({ budget, ceiling }) => {
    const skyhook = skyhookWith({ spec: { ...spec, ...(budget && { interruptionBudget: budget }) } })
    const lines = linesOf({ skyhook, nodes }).filter((line) => line.startsWith('skyhook_rollout_'))
    expect(lines).toEqual([
      seriesLine('skyhook_rollout_matched_nodes', { ...of, ...legacy }, 3),
      seriesLine('skyhook_rollout_ceiling', { ...of, ...legacy }, ceiling),
      seriesLine('skyhook_rollout_in_progress', { ...of, ...legacy }, 1),
      seriesLine('skyhook_rollout_completed', { ...of, ...legacy }, 1),
      seriesLine('skyhook_rollout_progress_percent', { ...of, ...legacy }, 33),
      seriesLine('skyhook_rollout_current_batch', { ...of, ...legacy }, 0),
      seriesLine('skyhook_rollout_consecutive_failures', { ...of, ...legacy }, 0),
      seriesLine('skyhook_rollout_should_stop', { ...of, ...legacy }, 0),
    ])
  })

  const paced = skyhookWith({ spec: { ...spec, deploymentPolicy: 'careful' } })
  const policyWith = (name: string): PolicyKnowledge => ({
    state: 'found',
    uid: 'p',
    generation: 1,
    spec: {
      default: { budget: { percent: 100 }, strategy: { exponential: {} } },
      compartments: [
        { name, selector: { matchLabels: { tier: 'prod' } }, budget: { count: 1 }, strategy: { linear: {} } },
        { name: 'rest', selector: { matchLabels: { tier: 'rest' } }, budget: { count: 1 } },
      ],
    },
  })
  const tiered = [{ labels: { tier: 'prod' } }, { labels: { tier: 'prod' }, status: 'waiting' }, { status: 'waiting' }]
  const matched = (policy: PolicyKnowledge): string[] =>
    only(linesOf({ skyhook: paced, nodes: tiered, policy }), 'skyhook_rollout_matched_nodes')

  test('each compartment of a policy has the strategy that it goes by', () => {
    expect(matched(policyWith('prod'))).toEqual([
      '{skyhook_name="demo",policy_name="careful",compartment_name="prod",strategy="linear"} 2',
      '{skyhook_name="demo",policy_name="careful",compartment_name="rest",strategy="exponential"} 0',
      '{skyhook_name="demo",policy_name="careful",compartment_name="__default__",strategy="exponential"} 1',
    ])
  })

  test('a renamed compartment takes the series of its old name away', () => {
    expect(matched(policyWith('production')).join('\n')).not.toContain('"prod"')
  })

  test('a policy that does not exist has no series: its compartments are not known', () => {
    const lines = linesOf({ skyhook: paced, nodes, policy: { state: 'missing' } })
    expect(lines.filter((line) => line.startsWith('skyhook_rollout_'))).toEqual([])
    expect(lines).toContain(seriesLine('skyhook_status', { ...of, status: 'in_progress' }, 1))
  })
})

describe('what someone has to act on', () => {
  test('nodes are counted by reason, and a reason of no catalogue counts as other', () => {
    const lines = linesOf({
      nodes: [
        { status: 'in_progress', reason: ['DrainBlocked', 'budget web'] },
        { status: 'in_progress', reason: ['DrainBlocked', 'budget db'] },
        { status: 'blocked', reason: ['Unheard', ''] },
        {},
      ],
    })
    expect(only(lines, 'skyhookd_fleet_node_reasons')).toEqual([
      '{skyhook_name="demo",reason="DrainBlocked"} 2',
      '{skyhook_name="demo",reason="other"} 1',
    ])
  })

  test.for([
    { status: 'True', reason: 'FailedNodesHoldBudget', expected: ['FailedNodesHoldBudget'] },
    { status: 'True', reason: 'Unheard', expected: ['other'] },
    { status: 'False', reason: 'NotStalled', expected: [] },
  ])('Stalled=$status with $reason shows $expected', ({ status, reason, expected }) => {
    const condition = { type: 'Stalled', status, reason, message: '', lastTransitionTime: '2026-11-20T14:00:00Z' }
    expect(
      only(linesOf({ skyhook: skyhookWith({ status: { conditions: [condition] } }) }), 'skyhookd_fleet_stalled'),
    ).toEqual(expected.map((reason) => `{skyhook_name="demo",reason="${reason}"} 1`))
  })

  test('only silent agents that were at work leave a node unattended', () => {
    const nodes = ['in_progress', 'erroring', 'waiting', 'in_progress'].map((status) => ({ status }))
    const lines = linesOf({ nodes, agents: allAgents('silent', { n4: 'unready' }) })
    expect(lines).toContain(seriesLine('skyhookd_fleet_unattended_nodes', of, 2))
    expect(nonZero(only(lines, 'skyhookd_fleet_agents'))).toEqual([
      '{skyhook_name="demo",state="unready"} 1',
      '{skyhook_name="demo",state="silent"} 3',
    ])
  })

  test('a cordon is left over when its Skyhook is gone, no longer selects the node, or is complete there', () => {
    const skyhooks = new Map([
      ['demo', skyhookWith({ spec: { ...spec, nodeSelectors: { matchLabels: { gpu: 'a' } } } })],
    ])
    const node = (name: string, gpu: string, status: string, cordons: readonly string[]): [string, CensusNode] => {
      const annotations = {
        ...Object.fromEntries(cordons.map((of) => [cordonKey(of), 'true'])),
        [statusKey('demo')]: status,
      }
      return [name, censusNode({ metadata: { name, uid: name, resourceVersion: '1', labels: { gpu }, annotations } })]
    }
    const leftOver = (...nodes: [string, CensusNode][]): string[] => seriesText(clusterSeries(skyhooks, new Map(nodes)))
    expect(leftOver(node('n1', 'a', 'in_progress', ['demo']), node('n2', 'a', 'complete', []))).toEqual([
      'skyhookd_fleet_left_over_cordons 0',
    ])
    expect(
      leftOver(
        node('n1', 'a', 'in_progress', ['demo', 'removed']),
        node('n2', 'b', 'in_progress', ['demo']),
        node('n3', 'a', 'complete', ['demo', 'removed']),
      ),
    ).toEqual(['skyhookd_fleet_left_over_cordons 3'])
  })
})

/** Any Nodes, also with annotations that no agent writes. */
const anyReport = fc.record(
  {
    status: fc.constantFrom('', 'complete', 'in_progress', 'erroring', 'waiting', 'blocked', 'nonsense'),
    entries: fc.uniqueArray(
      fc.record({
        version: fc.constantFrom('1.0.0', '1.1.0'),
        stage: fc.constantFrom(...stageNames, 'nonsense'),
        state: fc.constantFrom(...entryStates),
        restarts: fc.nat(3),
      }),
      { selector: ({ version }) => version, maxLength: 2 },
    ),
    labels: fc.constantFrom({ tier: 'a' }, { tier: 'b' }, {}),
    agent: fc.constantFrom('ready', 'unready', 'silent'),
  },
  { requiredKeys: ['status', 'entries', 'labels', 'agent'] },
)

/** Adds up a label's values, with all others the same. */
function sumBy(lines: readonly string[], name: string, keep: (line: string) => boolean = () => true): number {
  return lines
    .filter((line) => line.startsWith(`${name}{`) && keep(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

test('all sums are those of a recount, node by node', () => {
  const skyhook = skyhookWith({ spec: { ...spec, deploymentPolicy: 'careful' } })
  const policy: PolicyKnowledge = {
    state: 'found',
    uid: 'p',
    generation: 1,
    spec: {
      default: { budget: { percent: 50 }, strategy: { fixed: {} } },
      compartments: ['a', 'b'].map((name) => ({
        name,
        selector: { matchLabels: { tier: name } },
        budget: { count: 1 },
      })),
    },
  }
  fc.assert(
    fc.property(fc.array(anyReport, { maxLength: 30 }), (reports) => {
      const nodes = reports.map(({ entries, ...report }) => ({ ...report, entries: entries.map((one) => entry(one)) }))
      const agents = allAgents(
        'ready',
        Object.fromEntries(reports.map(({ agent }, at) => [`n${at + 1}`, agent as 'ready'])),
      )
      const lines = linesOf({ skyhook, nodes, agents, policy })
      expect(sumBy(lines, 'skyhook_status')).toBe(1)
      expect(sumBy(lines, 'skyhook_node_target_count')).toBe(nodes.length)
      expect(sumBy(lines, 'skyhook_node_status_count')).toBe(nodes.length)
      expect(sumBy(lines, 'skyhook_rollout_matched_nodes')).toBe(nodes.length)
      expect(sumBy(lines, 'skyhookd_fleet_agents')).toBe(nodes.length)
      for (const [status, series] of [
        ['complete', 'skyhook_rollout_completed'],
        ['in_progress', 'skyhook_rollout_in_progress'],
      ])
        expect(sumBy(lines, series ?? '')).toBe(
          sumBy(lines, 'skyhook_node_status_count', (line) => line.includes(`"${status}"`)),
        )
      for (const version of ['1.0.0', '1.1.0']) {
        const entries = nodes
          .filter(({ status }) => status !== '')
          .flatMap(({ entries }) => entries.filter((one) => one.version === version && one.stage !== 'nonsense'))
        const isOf = (line: string): boolean => line.includes(`package_version="${version}"`)
        expect(sumBy(lines, 'skyhook_package_state_count', isOf)).toBe(entries.length)
        expect(sumBy(lines, 'skyhook_package_stage_count', isOf)).toBe(entries.length)
        expect(sumBy(lines, 'skyhook_package_restarts_count', isOf)).toBe(
          entries.reduce((sum, { restarts = 0 }) => sum + restarts, 0),
        )
        for (const stage of stageNames)
          expect(sumBy(lines, 'skyhook_package_stage_count', (line) => isOf(line) && line.includes(`"${stage}"`))).toBe(
            entries.filter((one) => one.stage === stage).length,
          )
      }
    }),
  )
})
