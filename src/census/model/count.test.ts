import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cordonKey, disableKey, ignoreLabel, journalKey, nodeStateKey, pauseKey } from '../../schemas/annotations.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { completionHash } from '../../stages/model/package-inputs.ts'
import type { AgentState } from '../../stages/skyhook/gates.ts'
import { censusNode } from './cluster-view.ts'
import { rollUp } from './count.ts'
import { skyhookOfKey } from './node-facts.ts'
import {
  allAgents,
  countsOf,
  entry,
  nodeReporting,
  skyhookWith,
  spec,
  type NodeReport,
} from '../../../test/kit/objects/census-objects.ts'

const demo = skyhookWith()

describe('a node that reports complete', () => {
  const otherSpec = { packages: { tuning: { version: '1.2.0', image: 'registry.example.com/tuning' } } }
  const sameWork = {
    packages: {
      tuning: {
        ...spec.packages?.['tuning'],
        version: '1.1.0',
        image: 'mirror.example.com/tuning',
        stageTimeout: '5m',
      },
    },
  }

  test.each<[string, NodeReport, AgentState, NodeStatus]>([
    ['counts as complete', {}, 'ready', 'complete'],
    ['counts as complete while its agent is only unready', {}, 'unready', 'complete'],
    ['counts as complete while the pods cannot be listed', {}, 'unknown', 'complete'],
    ['counts as complete for a spec with the same work', { of: sameWork }, 'ready', 'complete'],
    ['is unknown once its agent is silent', {}, 'silent', 'unknown'],
    ['has work for another spec', { of: otherSpec }, 'ready', 'waiting'],
    ['has work when it never reported for which spec', { companion: { applied: undefined } }, 'ready', 'waiting'],
    [
      'has work when it finished with a Skyhook of that name that was deleted',
      { companion: { applied: completionHash({ metadata: { deletionTimestamp: 'then' }, spec }) } },
      'ready',
      'waiting',
    ],
    ['has work when its earlier registration reported it', { companion: { nodeUID: 'before' } }, 'ready', 'waiting'],
    [
      'has work when someone edited its state since',
      { stateText: '{}', companion: { sha256: 'of before' } },
      'ready',
      'waiting',
    ],
    [
      'has work when someone removed its state',
      { annotations: { [nodeStateKey('demo')]: undefined } },
      'ready',
      'waiting',
    ],
    [
      'has work when the operator reported it',
      { annotations: { [journalKey('demo')]: undefined } },
      'ready',
      'waiting',
    ],
    ['has work when a newer agent reported it in an unknown version', { companion: { v: 2 } }, 'ready', 'waiting'],
    ['has work when the companion is malformed', { annotations: { [journalKey('demo')]: 'yes' } }, 'ready', 'waiting'],
  ])('a node that reports complete %s', (_, reported, agent, status) => {
    const counts = countsOf(demo, [nodeReporting('n1', reported)], allAgents(agent))
    expect(counts.nodes.map((node) => node.status)).toEqual([status])
    expect(counts.complete).toBe(status === 'complete' ? 1 : 0)
  })
})

describe('a node that reports nothing', () => {
  test.each<[AgentState, NodeStatus]>([
    ['ready', 'waiting'],
    ['unready', 'unknown'],
    ['silent', 'unknown'],
    ['unknown', 'unknown'],
  ])('a node that reports nothing, with its agent %s, is %s', (agent, status) => {
    expect(countsOf(demo, [nodeReporting('n1', { status: '' })], allAgents(agent)).nodes[0]?.status).toBe(status)
  })

  test.each([
    [pauseKey, 'paused'],
    [disableKey, 'disabled'],
  ])('a node that reports nothing has the status of its Skyhook with %s', (key, status) => {
    const skyhook = skyhookWith({ metadata: { annotations: { [key]: 'true' } } })
    expect(countsOf(skyhook, [nodeReporting('n1', { status: '' })]).nodes[0]?.status).toBe(status)
  })
})

describe('counting', () => {
  test('counting covers the selected nodes by name, regardless of others', () => {
    const skyhook = skyhookWith({ spec: { ...spec, nodeSelectors: { matchLabels: { pool: 'gpu' } } } })
    const nodes = [
      nodeReporting('n3', { labels: { pool: 'gpu' } }),
      nodeReporting('n1', { labels: { pool: 'gpu' }, status: 'in_progress' }),
      nodeReporting('n2', { labels: { pool: 'cpu' }, status: 'erroring' }),
    ]
    const counts = countsOf(skyhook, nodes)
    expect(counts.nodes.map(({ name }) => name)).toEqual(['n1', 'n3'])
    expect(rollUp(counts)).toBe('in_progress')
  })

  test('counting finds the nodes that wait for a slot or a batch', () => {
    const waiting = (name: string, reason: string) => nodeReporting(name, { status: 'waiting', reason: [reason, 'x'] })
    const counts = countsOf(demo, [
      waiting('a', 'WaitingForSlot'),
      waiting('b', 'WaitingForBatch'),
      waiting('c', 'WaitingForPriority'),
    ])
    expect(counts.waiters).toBe(2)
  })

  test('a node that another Skyhook cordoned is not in service', () => {
    const nodes = [
      nodeReporting('a', { annotations: { [cordonKey('demo')]: 'true' } }),
      nodeReporting('b', { annotations: { [cordonKey('other')]: 'true' } }),
      nodeReporting('c', { labels: { [ignoreLabel]: 'true' } }),
    ]
    const facts = countsOf(demo, nodes, allAgents('ready', { d: 'unready' })).nodes
    expect(facts.map(({ isCordoned, isInService, isIgnored }) => [isCordoned, isInService, isIgnored])).toEqual([
      [true, false, false],
      [false, false, false],
      [false, true, true],
    ])
  })

  test('counting keeps the part of a state that the resource definition accepts', () => {
    const stateText = JSON.stringify({
      'tuning|1.1.0': { ...entry(), restarts: 2, extra: 'dropped' },
      'bad|1': { name: 'bad', version: '1', image: 'x', stage: 'baking', state: 'complete' },
      'odd|1': { name: 'odd', version: '1', stage: 'apply', state: 'maybe', restarts: -1 },
      'none|1': null,
    })
    expect(countsOf(demo, [nodeReporting('a', { stateText })]).nodes[0]?.entries).toEqual({
      'tuning|1.1.0': { ...entry(), restarts: 2 },
      'odd|1': { name: 'odd', version: '1', image: '', stage: 'apply' },
    })
    expect(countsOf(demo, [nodeReporting('a', { stateText: '[' })]).nodes[0]).toMatchObject({
      entries: {},
      isMalformed: true,
    })
  })

  test('counting never fails and takes nothing unproven for complete, regardless of the annotations', () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constantFrom('complete', 'in_progress', '{}', '{"v":1}'))
    fc.assert(
      fc.property(text, text, text, text, (state, status, journal, reason) => {
        const reported = { nodeState_demo: state, status_demo: status, journal_demo: journal, reason_demo: reason }
        const annotations = Object.fromEntries(
          Object.entries(reported).map(([key, value]) => [`skyhook.nvidia.com/${key}`, value]),
        )
        const { nodes } = countsOf(demo, [
          censusNode({ metadata: { name: 'n', uid: 'u', resourceVersion: '1', annotations } }),
        ])
        expect(nodes).toHaveLength(1)
        expect(nodes[0]?.status).not.toBe('complete')
      }),
    )
  })
})

describe('the roll-up', () => {
  const reporting = (...reported: string[]) =>
    countsOf(
      demo,
      reported.map((status, at) => nodeReporting(`n${at}`, { status })),
    )

  test.each<[readonly string[], NodeStatus]>([
    [[], 'complete'],
    [['complete', 'complete'], 'complete'],
    [['complete', 'waiting'], 'waiting'],
    [['waiting', 'blocked'], 'blocked'],
    [['waiting', 'blocked', 'erroring'], 'erroring'],
    [['waiting', 'blocked', 'erroring', 'in_progress'], 'in_progress'],
    [['complete', 'unknown'], 'unknown'],
    [['unknown', 'waiting'], 'waiting'],
    [['complete', 'paused'], 'paused'],
    [['no such word', 'complete'], 'unknown'],
  ])('the roll-up of %j is %s', (reported, status) => {
    expect(rollUp(reporting(...reported))).toBe(status)
  })

  const annotated = (...annotations: string[]) =>
    skyhookWith({ metadata: { annotations: Object.fromEntries(annotations.map((key) => [key, 'true'])) } })
  test.each([
    ['paused', annotated(pauseKey), 'in_progress', 'paused'],
    ['disabled', annotated(disableKey), 'erroring', 'disabled'],
    ['both', annotated(pauseKey, disableKey), 'waiting', 'paused'],
    ['paused and complete', annotated(pauseKey), 'complete', 'complete'],
  ])('the roll-up follows a Skyhook that is %s', (_, skyhook, reported, status) => {
    expect(rollUp(countsOf(skyhook, [nodeReporting('n1', { status: reported })]))).toBe(status)
  })

  test('the roll-up of an invalid spec is blocked, even if all nodes are complete', () => {
    const broken = {
      packages: { tuning: { version: '1.1.0', image: 'x', configMap: { a: '1' }, dependsOn: { tuning: '1.1.0' } } },
    }
    const counts = countsOf(skyhookWith({ spec: broken }), [nodeReporting('n1', { of: broken })])
    expect(counts.specProblem).toContain('cannot depend on itself')
    expect(rollUp(counts)).toBe('blocked')
  })
})

test.each([
  ['skyhook.nvidia.com/status_demo', 'demo'],
  ['skyhook.nvidia.com/nodeState_a.b-c_d', 'a.b-c_d'],
  ['skyhook.nvidia.com/cordoned-before', undefined],
  ['example.com/status_demo', undefined],
])('the key %s belongs to %s', (key, skyhook) => expect(skyhookOfKey(key)).toBe(skyhook))
