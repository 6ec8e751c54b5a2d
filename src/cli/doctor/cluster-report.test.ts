import { describe, expect, test } from 'vitest'
import { agentOn, at, fitCluster, nodeOf, nowMs, skyhookOf, slotOf } from '../../../test/kit/tool/doctor-facts.ts'
import { takeoverFindings } from '../../../test/kit/takeover/takeover-facts.ts'
import { defaultSettings } from '../fleet/fleet-view/settings.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { cordonKey, hostKey, keepOffBeforeKey, reasonKey } from '../../schemas/annotations.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { clusterReport, nodeReport } from './cluster-report.ts'
import { catalogue, type Finding, type FindingId, reportText } from './finding.ts'
import { confirmed, suspicionsOf } from './left-overs.ts'
import { expectedDefinitions } from './read/check-cluster.ts'

const reportOf = (facts: ClusterFacts) => clusterReport(facts, expectedDefinitions(), suspicionsOf(facts.fleet))
const findingsOf = (facts: ClusterFacts): readonly Finding[] => reportOf(facts).flatMap(({ findings }) => findings)
const withFleet = (change: Partial<ClusterFacts['fleet']>): Partial<ClusterFacts> => ({
  fleet: { ...fitCluster.fleet, ...change },
})
function valueOf<T>(fact: Known<T>): T {
  if (!fact.known) throw new Error(fact.why)
  return fact.value
}
const installed = (change: object): Partial<ClusterFacts> => {
  const daemonSet = valueOf(fitCluster.fleet.daemonSet)
  return withFleet({ daemonSet: known(daemonSet && { ...daemonSet, ...change }) })
}
const policies = valueOf(fitCluster.policies)
const bindings = valueOf(fitCluster.bindings)
const [firstSchema, ...otherSchemas] = valueOf(fitCluster.flowSchemas)
const definition = (change: (schema: string) => string): Partial<ClusterFacts> => ({
  definitions: known(
    new Map(
      expectedDefinitions().map(
        ({ name, schema }) =>
          [name, { schema: JSON.parse(change(JSON.stringify(schema))) as object, isEstablished: true }] as const,
      ),
    ),
  ),
})
const names = expectedDefinitions().map(({ name }) => name)
const withoutRight = (resource: string, verb: string): Partial<ClusterFacts> => ({
  access: known(
    valueOf(fitCluster.access).map(({ permission, isAllowed }) => ({
      permission,
      isAllowed: isAllowed && !(permission.resource === resource && permission.verb === verb),
    })),
  ),
})
/** Of other looks than that at an installation: host-report.test.ts has those of the host that doctor runs on. */
const localOnly = new Set<string>([
  'host-platform',
  'host-bus-silent',
  'host-memory-low',
  'host-disk-full',
  'host-disk-low',
  'host-journal-damaged',
  'host-files-disputed',
  ...takeoverFindings, // takeover/report.test.ts has them
])
const taint = defaultSettings.runtimeRequiredTaint
const tainted = (node: KubernetesNode): KubernetesNode => ({ ...node, spec: { taints: [taint] } })
const requiring = (pool: string) =>
  skyhookOf(`for-${pool}`, { runtimeRequired: true, nodeSelectors: { matchLabels: { pool } } })
const reported = (severity: string): string =>
  JSON.stringify({ findings: [{ id: 'noexec', severity, message: 'it is mounted noexec', remedy: 'mount it' }] })

test('nothing is found in a cluster as the chart configures it', () => {
  const checks = reportOf(fitCluster)
  expect(checks.map(({ verdict, findings, unknown }) => ({ verdict, findings, unknown }))).toEqual(
    checks.map(() => ({ verdict: 'ok', findings: [], unknown: [] })),
  )
  expect(checks).toHaveLength(11)
})

const rows: readonly [FindingId, string, Partial<ClusterFacts>, RegExp][] = [
  ['kubernetes-too-old', 'an old API server', { serverVersion: known('v1.29.9+k3s1') }, /v1\.29\.9.*v1\.30 or later/],
  ['tool-version', 'agents of another version', installed({ version: '1.1.0' }), /version 1\.0\.0.*version 1\.1\.0/],
  [
    'agents-not-installed',
    'no DaemonSet',
    withFleet({ daemonSet: known(undefined) }),
    /namespace skyhook has no DaemonSet/,
  ],
  [
    'permission-missing',
    'a role without evictions',
    withoutRight('pods/eviction', 'create'),
    /^the agents may not create pods\/eviction$/,
  ],
  [
    'permission-missing',
    'a role without Leases',
    withoutRight('leases', 'create'),
    /may not create leases in namespace skyhook/,
  ],
  [
    'permission-delete-pods',
    'a Skyhook that deletes pods without the right',
    withFleet({ skyhooks: known([skyhookOf('tuning', { drain: { onTimeout: 'delete' } })]) }),
    /may not delete pods.*tuning/,
  ],
  ['policy-missing', 'a missing policy', { policies: known(policies.slice(1)) }, /no .*Policy skyhookd-own-node/],
  [
    'policy-unbound',
    'a policy without a binding',
    { bindings: known(bindings.slice(1)) },
    /skyhookd-own-node has 0 of 1 binding/,
  ],
  [
    'policy-unbound',
    'a shard without a binding',
    { bindings: known(bindings.filter(({ name }) => name !== 'skyhookd-one-slot-7')) },
    /skyhookd-one-slot has 15 of 16 bindings/,
  ],
  [
    'policy-not-denying',
    'a binding that only audits',
    { bindings: known(bindings.map((one, index) => (index === 0 ? { ...one, actions: ['Audit'] } : one))) },
    /has the actions Audit, not Deny/,
  ],
  [
    'policy-not-enforced',
    'a policy that the API server does not ask',
    {
      trials: known([
        { suffix: 'own-node', outcome: 'refused' },
        { suffix: 'one-slot', outcome: 'admitted' },
      ]),
    },
    /^the API server admits what ValidatingAdmissionPolicy skyhookd-one-slot must refuse, tried by a dry run$/,
  ],
  [
    'policy-other-user',
    'agents of another ServiceAccount',
    { ...installed({ serviceAccount: 'mine' }), flowSchemas: unknown('x') },
    /does not name system:serviceaccount:skyhook:mine/,
  ],
  [
    'policy-fails-open',
    'a policy that fails open',
    { policies: known(policies.map((one, index) => (index === 0 ? { ...one, failurePolicy: 'Ignore' } : one))) },
    /failurePolicy Ignore/,
  ],
  [
    'definition-missing',
    'a missing definition',
    { definitions: known(new Map(names.map((name) => [name, undefined]))) },
    /there is no CustomResourceDefinition/,
  ],
  [
    'definition-not-served',
    'a definition that is not established',
    { definitions: known(new Map(names.map((name) => [name, { schema: {}, isEstablished: false }]))) },
    /is not established/,
  ],
  [
    'definition-lacks-fields',
    "the operator's definition",
    definition((text) => text.replaceAll('"onTimeout":', '"later":')),
    /skyhooks\.skyhook\.nvidia\.com lacks spec\.drain\.onTimeout: /,
  ],
  [
    'definition-differs',
    'another limit in a definition',
    definition((text) => text.replace('"maxLength":', '"minLength":')),
    /has other rules, limits or fields/,
  ],
  [
    'priority-missing',
    'a cluster without priority levels',
    { flowSchemas: known(otherSchemas) },
    /no FlowSchema skyhookd-acting/,
  ],
  [
    'priority-dangling',
    'a FlowSchema without its level',
    { priorityLevels: known(['skyhookd-waiting']) },
    /names the priority level skyhookd-acting, which does not exist/,
  ],
  [
    'priority-other-user',
    'a FlowSchema of others',
    { flowSchemas: known([...(firstSchema ? [{ ...firstSchema, serviceAccounts: [] }] : []), ...otherSchemas]) },
    /is not about ServiceAccount skyhook\/skyhookd/,
  ],
  [
    'node-not-ready',
    'a kubelet that is silent',
    {
      vitals: {
        ...fitCluster.vitals,
        heartbeats: known(
          new Map([
            ['n1', nowMs],
            ['n2', nowMs - 30_000],
          ]),
        ),
      },
    },
    /^the kubelet of node n2 has not renewed its Lease since 2026-01-01T23:59:30Z/,
  ],
  [
    'node-under-pressure',
    'a full disk',
    withFleet({
      nodes: known([
        nodeOf('n1'),
        { ...nodeOf('n2'), spec: { taints: [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }] } },
      ]),
    }),
    /^1 node with the taint node\.kubernetes\.io\/disk-pressure: n2$/,
  ],
  [
    'host-reason',
    'a host whose bus does not answer during the work',
    withFleet({
      nodes: known([
        nodeOf('n1'),
        nodeOf('n2', { [reasonKey('tuning')]: '{"reason":"HostUnreachable","message":"no answer"}' }),
      ]),
    }),
    /^n2: no answer$/,
  ],
  ['agent-missing', 'a node without an agent', withFleet({ agents: known([agentOn('n1')]) }), /^1 node .*: n2;/],
  [
    'agent-silent',
    'an agent that is not Ready',
    withFleet({
      agents: known([agentOn('n1'), agentOn('n2', { isReady: false, containerError: 'CrashLoopBackOff' })]),
    }),
    /^1 agent not Ready, on n2; .*CrashLoopBackOff/,
  ],
  [
    'agents-mixed',
    'agents of two images',
    withFleet({ agents: known([agentOn('n1'), agentOn('n2', { image: 'registry.test/skyhookd:0.9.0' })]) }),
    /1 run registry\.test\/skyhookd:1\.0\.0, 1 run registry\.test\/skyhookd:0\.9\.0/,
  ],
  ['census-silent', 'no election', { election: known(undefined) }, /no agent is elected/],
  [
    'census-silent',
    'an election of yesterday',
    {
      election: known({
        metadata: { name: 'skyhookd-census', uid: 'u', resourceVersion: '1' },
        spec: { holderIdentity: 'n9', renewTime: at(nowMs - 86_400_000), leaseDurationSeconds: 15 },
      }),
    },
    /the last one n9 at 2026-01-01T00:00:00/,
  ],
  [
    'census-uncounted',
    'an election whose agents do not count',
    {
      election: known({
        metadata: {
          name: 'skyhookd-census',
          uid: 'u',
          resourceVersion: '1',
          annotations: { 'skyhook.nvidia.com/counted-at': '2026-01-01T23:50:00Z' },
        },
        spec: { holderIdentity: 'n9', renewTime: at(nowMs), leaseDurationSeconds: 15 },
      }),
    },
    /not counted the nodes since 2026-01-01T23:50:00Z; the current one is n9$/,
  ],
  [
    'cordon-left-over',
    'a cordon without a slot',
    withFleet({ nodes: known([nodeOf('n1'), nodeOf('n2', { [cordonKey('tuning')]: 'true' })]) }),
    /^1 node cordoned for Skyhook tuning, but hold no slot of it: n2$/,
  ],
  [
    'cordon-left-over',
    'a cordon of a deleted Skyhook',
    withFleet({ nodes: known([nodeOf('n1', { [cordonKey('gone')]: 'true' }), nodeOf('n2')]) }),
    /Skyhook gone, which does not exist: n1/,
  ],
  [
    'cordon-note-left-over',
    'a note without a cordon',
    withFleet({ nodes: known([nodeOf('n1', { [keepOffBeforeKey]: '{}' }), nodeOf('n2')]) }),
    /^1 node with cordoned-before or keep-off-before/,
  ],
  [
    'taint-without-skyhook',
    'a taint of new nodes without a Skyhook that requires it',
    withFleet({ nodes: known([nodeOf('n1'), tainted(nodeOf('n2'))]) }),
    /^1 node with the taint skyhook\.nvidia\.com=runtime-required:NoSchedule, and no .* selects them: n2$/,
  ],
  [
    'taint-without-skyhook',
    'taints of new nodes beside a Skyhook that requires them of others',
    withFleet({
      nodes: known(['n1', 'n2'].map((name) => tainted(nodeOf(name)))),
      skyhooks: known([skyhookOf('tuning'), requiring('b')]),
    }),
    /^2 nodes with .* selects them, not for-b: n1, n2$/,
  ],
  [
    'taint-without-skyhook',
    "a taint of NodeWright's without a Skyhook that requires it",
    withFleet({
      nodes: known([nodeOf('n1'), { ...nodeOf('n2'), spec: { taints: [{ ...taint, key: 'nodewright.nvidia.com' }] } }]),
    }),
    /^1 node with the taint nodewright\.nvidia\.com=runtime-required:NoSchedule, and no .* selects them: n2$/,
  ],
  ['slot-without-node', 'a slot of a deleted Node', withFleet({ slots: known([slotOf('n9')]) }), /of n9$/],
  [
    'slot-of-former-node',
    'a slot of a Node that was registered again',
    withFleet({ slots: known([slotOf('n1', { uid: 'uid-before' })]) }),
    /^1 slot of an earlier registration.* of n1$/,
  ],
  [
    'slot-without-skyhook',
    'a slot of a deleted Skyhook',
    withFleet({ slots: known([slotOf('n1', { skyhook: 'gone' })]) }),
    /^1 slot of Skyhooks that do not exist: gone-.*\.slot-0 of n1$/,
  ],
  [
    'slot-not-renewed',
    'a slot that nobody renews',
    withFleet({ slots: known([slotOf('n1', { renewedAtMs: nowMs - 3_600_000 })]) }),
    /^1 slot that their holders do not renew/,
  ],
  [
    'slot-forged',
    'a slot under the name of a ledger',
    withFleet({
      strays: known([
        { ...slotOf('n1').lease, metadata: { ...slotOf('n1').lease.metadata, name: 'x-deadbeef.ledger' } },
      ]),
    }),
    /^1 Lease with labels of a slot under another name: x-deadbeef.ledger$/,
  ],
  [
    'host-error',
    'an unfit host',
    withFleet({ nodes: known([nodeOf('n1', { [hostKey]: reported('error') }), nodeOf('n2')]) }),
    /^noexec on n1: it is mounted noexec$/,
  ],
  [
    'host-warning',
    'hosts with the same warning',
    withFleet({ nodes: known(['n1', 'n2'].map((name) => nodeOf(name, { [hostKey]: reported('warning') }))) }),
    /^noexec on n1, n2: it is mounted noexec$/,
  ],
]

describe('each problem is found, with its remedy', () => {
  test.each(rows)('%s is found: %s', (id, _, change, message) => {
    const findings = findingsOf({ ...fitCluster, ...change })
    const found = findings.filter((one) => one.id === id)
    expect(found.map((one) => one.message).join('\n')).toMatch(message)
    for (const one of found)
      expect(one).toMatchObject({ severity: catalogue[id].severity, remedy: expect.stringMatching(/\w{4}/) as unknown })
    expect(new Set(findings.map((one) => one.id))).toEqual(new Set([id]))
  })

  test('the table has a row for each id', () => {
    expect([...new Set(rows.map(([id]) => id))].sort()).toEqual(
      Object.keys(catalogue)
        .filter((id) => !localOnly.has(id))
        .sort(),
    )
  })
})

describe('ordinary work is not a finding', () => {
  test.each<[string, Partial<ClusterFacts>]>([
    [
      'a node that joined a minute ago',
      withFleet({
        nodes: known([
          nodeOf('n1'),
          nodeOf('n2'),
          {
            ...nodeOf('n3'),
            metadata: { ...nodeOf('n3').metadata, creationTimestamp: at(nowMs - 60_000) },
          },
        ]),
      }),
    ],
    [
      'an agent that is being replaced',
      withFleet({ agents: known([agentOn('n1'), agentOn('n2', { isReady: false, sinceMs: nowMs - 60_000 })]) }),
    ],
    [
      'a cordon with its slot',
      withFleet({ nodes: known([nodeOf('n1', { [cordonKey('tuning')]: 'true' }), nodeOf('n2')]) }),
    ],
    ['a slot during a long reboot', withFleet({ slots: known([slotOf('n1', { renewedAtMs: nowMs - 300_000 })]) })],
    [
      'a new node with a Skyhook that requires its taint',
      withFleet({
        nodes: known([nodeOf('n1'), tainted(nodeOf('n2'))]),
        skyhooks: known([skyhookOf('tuning'), requiring('a')]),
      }),
    ],
    ['a tool from the sources', { toolVersion: 'source' }],
    [
      'a definition with another description',
      definition((text) => text.replaceAll(/"description":"(?:[^"\\]|\\.)*"/g, '"description":"x"')),
    ],
  ])('%s is not a finding', (_, change) => {
    expect(findingsOf({ ...fitCluster, ...change })).toEqual([])
  })

  test('a node that no Skyhook selects and the DaemonSet leaves out needs no agent', () => {
    const windows = {
      ...nodeOf('w1'),
      metadata: { ...nodeOf('w1').metadata, labels: { 'kubernetes.io/os': 'windows' } },
    }
    const fleet = withFleet({ nodes: known([nodeOf('n1'), nodeOf('n2'), windows]) })
    expect(findingsOf({ ...fitCluster, ...fleet })).toEqual([])
  })

  test('a left-over counts only when a second look confirms it', () => {
    const cordoned = {
      ...fitCluster.fleet,
      nodes: known([nodeOf('n1'), nodeOf('n2', { [cordonKey('tuning')]: 'true' })]),
    }
    const first = suspicionsOf(cordoned)
    expect(first).toMatchObject([{ id: 'cordon-left-over', node: 'n2', skyhook: 'tuning' }])
    expect(confirmed(first, suspicionsOf(fitCluster.fleet))).toEqual([])
    expect(confirmed(first, suspicionsOf(cordoned))).toEqual(first)
    expect(confirmed([], suspicionsOf(cordoned))).toEqual([])
  })
})

test('what may not be read is unknown, and never taken for missing', () => {
  const no = unknown('you may not read it')
  const facts: ClusterFacts = {
    ...fitCluster,
    serverVersion: no,
    definitions: no,
    policies: no,
    bindings: no,
    flowSchemas: no,
    priorityLevels: no,
    access: no,
    election: no,
    fleet: { ...fitCluster.fleet, nodes: no, slots: no, agents: no, daemonSet: no },
  }
  const checks = reportOf(facts)
  expect(checks.map(({ check, verdict }) => [check, verdict])).toEqual(checks.map(({ check }) => [check, 'unknown']))
  expect(checks.flatMap(({ findings }) => findings)).toEqual([])
})

test('the checks of one node leave out findings about others', () => {
  const nodes = ['n1', 'n2'].map((name) => nodeOf(name, { [cordonKey('gone')]: 'true', [hostKey]: reported('error') }))
  const fleet = { ...fitCluster.fleet, nodes: known(nodes.map(tainted)), agents: known([agentOn('n1')]) }
  const second = nodes.map(tainted)[1]
  if (second === undefined) throw new Error('there are two nodes')
  const checks = nodeReport({ fleet, vitals: fitCluster.vitals }, second, suspicionsOf(fleet))
  const objects = checks.flatMap(({ findings }) => findings.flatMap((one) => one.objects.map(({ name }) => name)))
  expect(new Set(objects)).toEqual(new Set(['n2']))
  expect(checks.map(({ check, verdict }) => [check, verdict])).toEqual([
    ['agents', 'error'],
    ['cordons', 'error'],
    ['slots', 'ok'],
    ['taints', 'warning'],
    ['hosts', 'error'],
  ])
})

test('the text has a line for each check, with id, remedy and command of each finding', () => {
  const text = reportText(
    reportOf({
      ...fitCluster,
      toolVersion: 'source',
      access: unknown('you may not ask'),
      serverVersion: known('v1.20.0'),
    }),
  )
  expect(text).toBe(`versions     ERROR    Kubernetes v1.20.0, agents 1.0.0, this tool source
                      ERROR kubernetes-too-old: the API server runs v1.20.0, agents need v1.30 or later
                        remedy: upgrade Kubernetes: earlier versions cannot confine each agent to its own node
permissions  unknown  unknown: you may not ask
policies     ok       8 policies of release skyhookd, 8 of them tried
definitions  ok       those of version source
priority     ok       skyhookd-acting, skyhookd-waiting
agents       ok       2 nodes, 2 Ready agents in the cluster
census       ok       held by n1
cordons      ok       all nodes
slots        ok       1 slot
taints       ok       2 nodes
hosts        ok       2 hosts described by their agents

1 error, 0 warnings, 1 check not or not fully possible
`)
})
