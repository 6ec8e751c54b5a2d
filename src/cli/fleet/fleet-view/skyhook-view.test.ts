import { describe, expect, test } from 'vitest'
import { nodesPath, type Sample, sampleServer } from '../../../../test/kit/api-server/sample-server.ts'
import { withNodeCount } from '../../../daemon/slots/slot-requests.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { bootstrapLimitOf, limitOf } from '../../../lease/budget/budget.ts'
import { ledgerAnnotation, selectorHash } from '../../../lease/ledger.ts'
import { ledgerLabels, ledgerName } from '../../../lease/names.ts'
import { firstBatch } from '../../../lease/policy/batch.ts'
import { readStrategy } from '../../../lease/policy/strategy.ts'
import type { Limit } from '../../../lease/rule.ts'
import type { Lease } from '../../../lease/slot.ts'
import { policiesPath, skyhooksPath } from '../../../schemas/api.ts'
import { type Budget, budgetOf } from '../../../schemas/budget.ts'
import type { DeploymentPolicySpec, PolicyKnowledge } from '../../../schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Skyhook, SkyhookSpec } from '../../../schemas/skyhook.ts'
import { appliedHash } from '../../../stages/model/package-inputs.ts'
import type { SkyhookView } from '../../../stages/model/snapshot.ts'
import { nodeView } from '../../reason/explain/node-snapshot.ts'
import { atOnce } from '../../reason/plan/at-once.ts'
import { fleetStatus } from '../../reason/status/fleet-status.ts'
import { createNodeReader } from '../../reason/status/node-report.ts'
import type { FleetView } from './fleet-view.ts'
import { readNodeDetail } from './node-detail.ts'
import { slimNode } from './project.ts'
import { readFleet } from './collections.ts'

const namespace = 'default'
const strategy = { fixed: { initialBatch: 100 } }

type Case = {
  readonly spec?: SkyhookSpec
  readonly defaultBudget?: Budget
  /** Of the only compartment of a policy. */
  readonly ofPolicy?: DeploymentPolicySpec['default']['budget']
  /** What the census has counted; undefined: it has not. */
  readonly matched: number | undefined
  readonly isJoining?: boolean
}

type Cluster = {
  readonly api: Sample
  readonly transport: KubeTransport
  readonly skyhook: Skyhook
  readonly policy: PolicyKnowledge | undefined
  readonly ledgers: readonly Lease[]
}

/** Four Nodes, which the Skyhook selects, and what the census has left behind. */
function clusterOf({ spec = {}, defaultBudget = {}, ofPolicy, matched, isJoining = false }: Case): Cluster {
  const api = sampleServer()
  const taints = isJoining ? [{ key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }] : []
  for (const name of ['n1', 'n2', 'n3', 'n4']) api.put(nodesPath, { metadata: { name }, spec: { taints } })
  api.put(`/api/v1/namespaces/${namespace}/configmaps`, {
    metadata: { name: 'skyhookd', labels: { 'app.kubernetes.io/name': 'skyhookd' } },
    data: { 'defaults.interruptionBudget': JSON.stringify(defaultBudget) },
  })
  const policySpec: DeploymentPolicySpec | undefined = ofPolicy && { default: { budget: ofPolicy, strategy } }
  const policyObject = policySpec && api.put(policiesPath, { metadata: { name: 'p' }, spec: policySpec })
  const policy: PolicyKnowledge | undefined = policyObject &&
    policySpec && { state: 'found', uid: policyObject.metadata.uid, generation: 1, spec: policySpec, nodeLabels: {} }
  const packages = { a: { version: '1.0.0', image: 'r/a' } }
  const whole = { packages, ...spec, ...(policy && { deploymentPolicy: 'p' }) }
  const skyhook = api.put(skyhooksPath, { metadata: { name: 's' }, spec: whole }) as unknown as Skyhook
  const identity = { name: 's', uid: skyhook.metadata.uid }
  const compartment = policy
    ? { __default__: { matched, completed: 0, waiters: 0, batch: firstBatch(readStrategy(strategy), 1) } }
    : { '': { matched, completed: 0 } }
  const ledger = {
    v: 1,
    skyhookUID: identity.uid,
    generation: 1,
    applied: appliedHash(skyhook.spec),
    selectorHash: selectorHash(undefined),
    waiters: 0,
    ...(policyObject && { policy: { uid: policyObject.metadata.uid, generation: 1 } }),
    compartments: compartment,
  }
  const ledgers =
    matched === undefined
      ? []
      : [
          api.put(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, {
            metadata: {
              name: ledgerName(identity),
              labels: ledgerLabels(identity),
              annotations: { [ledgerAnnotation]: JSON.stringify(ledger) },
            },
          }) as unknown as Lease,
        ]
  return { api, transport: api.connect(), skyhook, policy, ledgers }
}

/** What an agent goes by right before it asks for a slot. */
async function agentsLimit(
  { transport, skyhook: { metadata, spec }, policy, ledgers }: Cluster,
  { defaultBudget = {}, isJoining = false }: Case,
): Promise<Limit> {
  const seen: SkyhookView = { metadata, spec, budget: budgetOf(spec, defaultBudget), stale: false, policy }
  const view = await withNodeCount(transport, seen, { isJoining, signal: new AbortController().signal })
  return isJoining ? bootstrapLimitOf(view, ledgers) : limitOf(view, ledgers)
}

async function explainedLimit({ transport }: Cluster, fleet: FleetView<KubernetesNode>): Promise<Limit | undefined> {
  const skyhooks = fleet.skyhooks.known ? fleet.skyhooks.value : []
  const node = fleet.nodes.known ? fleet.nodes.value[0] : undefined
  if (node === undefined) throw new Error('there is no Node')
  const { slotAnswers } = nodeView(fleet, skyhooks, node, await readNodeDetail(transport, node.metadata.name))
  const answer = slotAnswers.get('s')
  return answer?.known === true ? answer.value.limit : undefined
}

function shownLimit(fleet: FleetView<KubernetesNode>): Limit | undefined {
  const nodes = fleet.nodes.known ? { ...fleet.nodes, value: fleet.nodes.value.map(createNodeReader()) } : fleet.nodes
  const found = fleetStatus({ ...fleet, nodes }, [])
  const budget = found.known ? found.value[0]?.budget : undefined
  return budget?.known === true ? budget.value.limit : undefined
}

const cases: readonly (Case & { readonly what: string; readonly limit: Limit })[] = [
  { what: 'a percentage', spec: { interruptionBudget: { percent: 10 } }, matched: 40, limit: 1 },
  { what: 'half of them', spec: { interruptionBudget: { percent: 50 } }, matched: 40, limit: 2 },
  { what: 'all of them', spec: { interruptionBudget: { percent: 100 } }, matched: 40, limit: 4 },
  { what: 'a ceiling below', spec: { interruptionBudget: { percent: 100, maxCount: 3 } }, matched: 40, limit: 3 },
  { what: 'the default of the chart', defaultBudget: { percent: 50 }, matched: 40, limit: 2 },
  { what: 'a policy', ofPolicy: { percent: 50 }, matched: 40, limit: 2 },
  {
    what: 'the budget for joining nodes',
    spec: { runtimeRequired: true, interruptionBudget: { percent: 50 } },
    matched: 400,
    isJoining: true,
    limit: 2,
  },
  {
    what: 'a tenth of them for joining nodes',
    spec: { runtimeRequired: true, interruptionBudget: { count: 1 } },
    matched: 400,
    isJoining: true,
    limit: 1,
  },
  { what: 'a count, which nothing caps', spec: { interruptionBudget: { count: 30 } }, matched: 40, limit: 30 },
  { what: 'no budget', matched: 40, limit: 'unlimited' },
  { what: 'a budget of zero', spec: { interruptionBudget: { percent: 0 } }, matched: 40, limit: 0 },
  { what: 'a count of fewer than there are', spec: { interruptionBudget: { percent: 50 } }, matched: 2, limit: 1 },
  {
    what: 'a percentage of nodes that nobody has counted',
    spec: { interruptionBudget: { percent: 50 } },
    matched: undefined,
    limit: { unknown: 'the census has not counted this Skyhook yet' },
  },
]

describe('the tool shows as many slots as an agent uses, in a cluster of four Nodes', () => {
  test.each(cases)('under $what, where $matched were counted', async (given) => {
    const cluster = clusterOf(given)
    const { api, transport } = cluster
    const fleet = await readFleet(transport, { namespace, clock: api.clock, nodeOf: slimNode })
    const { limit, matched, isJoining = false } = given
    expect(await agentsLimit(cluster, given), 'an agent').toEqual(limit)
    expect(await explainedLimit(cluster, fleet), 'explain').toEqual(limit)
    if (!isJoining && given.ofPolicy === undefined) expect(shownLimit(fleet), 'status, dashboard').toEqual(limit)
    // of the fleet as it would be counted now
    if (isJoining || matched === undefined || matched < 4) return
    const nodes = fleet.nodes.known ? fleet.nodes.value : []
    const policy = cluster.policy?.state === 'found' ? cluster.policy.spec : undefined
    const planned = atOnce(cluster.skyhook.spec, { known: true, value: policy }, nodes, fleet.settings)
    expect(
      planned.map((one) => one.limit),
      'plan',
    ).toEqual([limit])
  })
})
