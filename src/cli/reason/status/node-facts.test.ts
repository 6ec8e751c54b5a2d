import { describe, expect, test } from 'vitest'
import { nodeReporting, skyhookWith, type NodeReport } from '../../../../test/kit/objects/census-objects.ts'
import { countSelectedNodes } from '../../../census/model/count.ts'
import { disableKey, journalKey, nodeStateKey, pauseKey } from '../../../schemas/annotations.ts'
import type { DeploymentPolicySpec, PolicyKnowledge } from '../../../schemas/deployment-policy.ts'
import type { NodeStatus, Skyhook } from '../../../schemas/skyhook.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import type { AgentState } from '../../../stages/skyhook/gates.ts'
import type { AgentPod, FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { agentPodOf } from '../../fleet/fleet-view/project.ts'
import { agentStates, nodeFacts } from './node-facts.ts'
import { createNodeReader, type NodeRow } from './node-report.ts'

const nowMs = Date.parse('2026-03-01T12:00:00Z')
const minutesAgo = (minutes: number): string => new Date(nowMs - minutes * 60_000).toISOString()

type Facts = {
  readonly report: NodeReport
  readonly agent: AgentState
  readonly annotations: Readonly<Record<string, string>>
  readonly policy: PolicyKnowledge['state'] | undefined
}

const reports: readonly NodeReport[] = [
  { status: '' },
  { status: 'complete' },
  { status: 'complete', of: {} },
  { status: 'complete', uid: 'n1-uid', companion: { nodeUID: 'before' } },
  { status: 'complete', annotations: { [nodeStateKey('demo')]: '{}' } },
  { status: 'complete', annotations: { [journalKey('demo')]: undefined } },
  { status: 'in_progress' },
  { status: 'erroring' },
  { status: 'something else' },
]
const agents: readonly AgentState[] = ['ready', 'unready', 'silent', 'unknown']
const annotations = [{}, { [pauseKey]: 'true' }, { [disableKey]: 'true' }, { [pauseKey]: 'true', [disableKey]: 'true' }]
const policies = [undefined, 'found', 'missing'] as const

const combinations: readonly Facts[] = reports.flatMap((report) =>
  agents.flatMap((agent) =>
    annotations.flatMap((keys) => policies.map((policy) => ({ report, agent, annotations: keys, policy }))),
  ),
)

const policySpec: DeploymentPolicySpec = { default: { budget: { count: 1 }, strategy: { fixed: {} } } }
const policyObject = { metadata: { name: 'policy', uid: 'p', resourceVersion: '1', generation: 1 }, spec: policySpec }

const fleetWith = (more: Partial<FleetView<NodeRow>>): FleetView<NodeRow> => ({
  takenAtMs: nowMs,
  namespace: 'skyhook',
  skyhooks: known([]),
  policies: known([]),
  nodes: known([]),
  slots: known([]),
  ledgers: known([]),
  strays: known([]),
  agents: known([]),
  daemonSet: known(undefined),
  settings: unknown('not read'),
  ...more,
})

function statusOfTool(skyhook: Skyhook, { report, agent, policy }: Facts): NodeStatus | undefined {
  const { name, uid, labels, annotations: written } = nodeReporting('n1', report)
  const node = createNodeReader()({ metadata: { name, uid, resourceVersion: '1', labels, annotations: written } })
  const fleet = fleetWith({ nodes: known([node]), policies: known(policy === 'found' ? [policyObject] : []) })
  const facts = nodeFacts(fleet, skyhook, () => agent)
  return facts.known ? facts.value[0]?.status : undefined
}

function statusOfCensus({ metadata, spec }: Skyhook, { report, agent, policy }: Facts): NodeStatus | undefined {
  const knowledge: PolicyKnowledge | undefined =
    policy === 'found'
      ? { state: 'found', uid: 'p', generation: 1, spec: policySpec }
      : policy === 'missing'
        ? { state: 'missing' }
        : undefined
  const view = { metadata, spec, budget: {}, stale: false, policy: knowledge }
  const everybody = { ready: 1, of: () => agent, isDead: () => false }
  return countSelectedNodes(view, [nodeReporting('n1', report)], everybody).nodes[0]?.status
}

test('a screen and the census derive the same status from the same facts', () => {
  const differing = combinations.flatMap((facts) => {
    const own = skyhookWith({ metadata: { annotations: facts.annotations } })
    const skyhook = facts.policy === undefined ? own : { ...own, spec: { ...own.spec, deploymentPolicy: 'policy' } }
    const [tool, census] = [statusOfTool(skyhook, facts), statusOfCensus(skyhook, facts)]
    return tool === census ? [] : [{ ...facts, tool, census }]
  })
  expect(differing).toEqual([])
})

test('a node is not blocked for a person who may not read DeploymentPolicies', () => {
  const fleet = fleetWith({ nodes: known([row('n1')]), policies: unknown('you may not') })
  const skyhook = skyhookWith({ spec: { deploymentPolicy: 'policy' } })
  expect(nodeFacts(fleet, skyhook, () => 'ready')).toMatchObject({ value: [{ status: 'waiting' }] })
})

const row = (name: string, createdAt = minutesAgo(600)): NodeRow =>
  createNodeReader()({ metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: createdAt } })

type PodFacts = { readonly createdAt?: string; readonly ready?: readonly [status: string, since: string] }

const pod = ({ createdAt = minutesAgo(600), ready }: PodFacts): AgentPod =>
  agentPodOf({
    metadata: { name: 'agent', uid: 'agent', resourceVersion: '1', creationTimestamp: createdAt },
    spec: { nodeName: 'n1' },
    status: { conditions: ready ? [{ type: 'Ready', status: ready[0], lastTransitionTime: ready[1] }] : [] },
  })

describe('the agent of a node', () => {
  test.each<[facts: string, state: AgentState, pods: readonly PodFacts[], node?: NodeRow]>([
    ['has a Ready pod', 'ready', [{ ready: ['True', minutesAgo(60)] }]],
    ['has a Ready pod beside one that is not', 'ready', [{}, { ready: ['True', minutesAgo(60)] }]],
    ['has not been Ready for nine minutes', 'unready', [{ ready: ['False', minutesAgo(9)] }]],
    ['has not been Ready for ten minutes', 'silent', [{ ready: ['False', minutesAgo(10)] }]],
    ['has a new pod without a Ready condition', 'unready', [{ createdAt: minutesAgo(0) }]],
    ['has an old pod without a Ready condition', 'silent', [{ createdAt: minutesAgo(10) }]],
    ['has no pod on a node that has just joined', 'unready', [], row('n1', minutesAgo(9))],
    ['has no pod on an old node', 'silent', []],
  ])('a node whose agent %s is %s', (_, state, pods, node = row('n1')) => {
    expect(agentStates(fleetWith({ agents: known(pods.map(pod)) }))(node)).toBe(state)
  })

  test('a node whose pods may not be read has an unknown agent', () => {
    expect(agentStates(fleetWith({ agents: unknown('you may not') }))(row('n1'))).toBe('unknown')
  })
})
