/**
 * Where NodeWright ran, on a real API server: each trace of it, and of an operator at work, is an error of `kubectl
 * skyhook doctor --takeover`, and helm neither installs nor upgrades the chart, until the command of the finding ran.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { checkTakeover } from '../../src/cli/doctor/read/read-takeover.ts'
import { skyhooksPath } from '../../src/schemas/api.ts'
import { startApiServer } from './api-server.ts'
import { chart, type ChartCluster, type Json, namespace, startChartCluster, until } from './chart-cluster.ts'

const group = 'nodewright.nvidia.com'
const { signal } = new AbortController()
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const nodeWrights = `/apis/${group}/v1alpha1/nodewrights`
const merge = 'application/merge-patch+json'
const ignore = 'skyhook.nvidia.com/ignore-nodewright'

let cluster: ChartCluster
beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await cluster.server.startControllerManager() // which deletes what belongs to what is deleted
  await cluster.helm('install', 'skyhookd', chart, '--create-namespace')
})
afterAll(async () => await cluster?.stop())

/** Creates an object, and deletes it at the end of the test. */
async function create(path: string, object: Json, status?: Json): Promise<void> {
  const name = (object['metadata'] as { name: string }).name
  const created = await cluster.admin('POST', path, object)
  expect([created.status, created.message]).toEqual([201, ''])
  onTestFinished(async () => void (await cluster.admin('DELETE', `${path}/${name}?propagationPolicy=Background`)))
  if (status !== undefined)
    expect(await cluster.admin('PATCH', `${path}/${name}/status`, { status }, merge)).toMatchObject({ status: 200 })
}
const meta = (name: string, more: Json = {}): Json => ({ metadata: { name, ...more } })

async function serveNodeWrights(...names: readonly string[]): Promise<void> {
  // after the deletion, and before the next test: helm asks what is served
  onTestFinished(async () => {
    await until(
      () => cluster.admin('GET', `/apis/${group}`),
      ({ status }) => status === 404,
      30_000,
    )
  })
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  await create(definitions, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    ...meta(`nodewrights.${group}`),
    spec: {
      group,
      scope: 'Cluster',
      names: { kind: 'NodeWright', plural: 'nodewrights', singular: 'nodewright' },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
    },
  })
  await until(
    () => cluster.admin('GET', nodeWrights),
    ({ status }) => status === 200,
  )
  for (const name of names)
    await create(nodeWrights, { apiVersion: `${group}/v1alpha1`, kind: 'NodeWright', ...meta(name) })
}
const skyhook = (name: string, annotations: Json = {}): Json => ({
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'Skyhook',
  ...meta(name, { annotations }),
  spec: {},
})
const createSkyhook = async (name: string, annotations?: Json): Promise<void> =>
  await create(skyhooksPath, skyhook(name, annotations))
/** As NodeWright leaves it when it has taken the operator's keys away. */
async function createNode(name: string, rollout: string): Promise<void> {
  const annotations = { [`${group}/nodeState_${rollout}`]: '{}', [`${group}/version_${rollout}`]: 'v0.20.0' }
  await create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', ...meta(name, { annotations }) })
}

const container = { name: 'main', image: 'registry.example.com/nodewright/operator:v0.20.0' }
const createJob = async (name: string, status: Json = {}): Promise<void> =>
  await create(
    `/apis/batch/v1/namespaces/${namespace}/jobs`,
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      ...meta(name, { labels: { [`${group}/node`]: 'node-1', [`${group}/name`]: 'tuning' } }),
      spec: { suspend: true, template: { spec: { restartPolicy: 'Never', containers: [container] } } },
    },
    status,
  )
async function createOperator(name: string, image = container.image): Promise<void> {
  const labels = { app: name }
  const env = [{ name: 'RUNTIME_REQUIRED_TAINT', value: 'x' }]
  await create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    ...meta(name),
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ ...container, image, env }] } },
    },
  })
}
/** About its own group alone, so that only its label tells whose it is. */
const createWebhook = async (kind: 'Validating' | 'Mutating', name: string): Promise<void> =>
  await create(`/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    ...meta(name, { labels: { [`${group}/webhook-config`]: 'true' } }),
    webhooks: [
      {
        name: `${name}.nvidia.com`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { service: { name: 'nodewright-webhook-service', namespace } },
        rules: [{ apiGroups: [group], apiVersions: ['v1alpha1'], operations: ['UPDATE'], resources: ['nodewrights'] }],
      },
    ],
  })
const createEndpoint = async (isReady: boolean): Promise<void> =>
  await create(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    ...meta('webhook', { labels: { 'kubernetes.io/service-name': 'nodewright-webhook-service' } }),
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: isReady } }],
    ports: [],
  })

/** Errors of doctor, with their commands. */
async function errors(): Promise<readonly (readonly [string, string])[]> {
  const findings = (await checkTakeover(cluster.server.admin, signal)).flatMap((check) => check.findings)
  return findings.filter(({ severity }) => severity === 'error').map(({ id, command = '' }) => [id, command])
}
/** What helm says; empty if it did what it was asked. */
const upgrade = async (...values: readonly string[]): Promise<string> =>
  await cluster.helm('upgrade', 'skyhookd', chart, '--reset-values', ...values).then(() => '', String)
const install = async (...values: readonly string[]): Promise<string> =>
  await cluster.helm('install', 'other', chart, '--dry-run=server', ...values).then(() => '', String)
const annotate = (which: string): string => `kubectl annotate skyhook ${which} ${ignore}=true`

test('nothing stands against a cluster without another operator', async () => {
  await createSkyhook('tuning')
  expect([await errors(), await upgrade()]).toEqual([[], ''])
})

type Case = [what: string, make: () => Promise<void>, id: string, command: string]
const leftOver = ['nodewrights', 'deploymentpolicies'].map((plural) => `${plural}.${group}`).join(' ')
const deleteDefinitions = `kubectl delete customresourcedefinition ${leftOver} --ignore-not-found`
const cases: readonly Case[] = [
  ['the definition of NodeWrights', async () => await serveNodeWrights(), 'nodewright-served', deleteDefinitions],
  [
    'a NodeWright with the name of a Skyhook',
    async () => {
      await serveNodeWrights('tuning')
      await createSkyhook('tuning')
    },
    'nodewright-duplicate',
    annotate('tuning'),
  ],
  [
    'state of a Skyhook under the other prefix',
    async () => {
      await createSkyhook('tuning')
      await createNode('node-1', 'tuning')
    },
    'nodewright-state',
    annotate('tuning'),
  ],
  [
    'a Job that has not ended',
    async () => await createJob('tuning-apply'),
    'nodewright-job',
    `kubectl -n ${namespace} delete job tuning-apply --cascade=foreground`,
  ],
  [
    'the operator of NodeWright',
    async () => await createOperator('nodewright-controller-manager', 'mirror.example.com/renamed:v0.20.0'),
    'operator-running',
    `kubectl -n ${namespace} scale deployment nodewright-controller-manager --replicas=0`,
  ],
  [
    'an operator under another name',
    async () => await createOperator('manager'),
    'operator-running',
    `kubectl -n ${namespace} scale deployment manager --replicas=0`,
  ],
  [
    'a webhook without a Service that answers',
    async () => await createWebhook('Validating', 'nodewright-validating-webhook'),
    'operator-webhook',
    'kubectl delete validatingwebhookconfiguration nodewright-validating-webhook',
  ],
  [
    'a webhook whose Service is not ready',
    async () => {
      await createWebhook('Mutating', 'nodewright-mutating-webhook')
      await createEndpoint(false)
    },
    'operator-webhook',
    'kubectl delete mutatingwebhookconfiguration nodewright-mutating-webhook',
  ],
]

describe.each(cases)('with %s', (_, make, id, command) => {
  test('doctor, an install and an upgrade name it with the command that resolves it', async () => {
    await make()
    expect(await errors()).toContainEqual([id, command])
    expect(await upgrade()).toContain(command)
    expect(await install()).toContain(command)
    expect(await upgrade('--set', 'takeoverCheck=false')).toBe('')
  })

  test('the command resolves it', async () => {
    await make()
    const [, ...words] = command.split(' ')
    await cluster.server.kubectl(...words)
    await until(
      async () => (await errors()).filter(([found]) => found === id),
      (left) => left.length === 0,
      30_000,
    )
    expect(await upgrade()).not.toContain(command)
  })
})

describe('what does not count', () => {
  test.each<[string, () => Promise<void>]>([
    ['a Job that is complete', async () => await createJob('ended', completed)],
    [
      'a webhook that is answered',
      async () => {
        await createWebhook('Validating', 'nodewright-validating-webhook')
        await createEndpoint(true)
      },
    ],
    [
      'state under the other prefix of a Skyhook for which it is ignored, with a NodeWright of its name',
      async () => {
        await serveNodeWrights('tuning')
        await createSkyhook('tuning', { [ignore]: 'true' })
        await createNode('node-1', 'tuning')
      },
    ],
    ['state of what is no Skyhook', async () => await createNode('node-1', 'gone')],
  ])('%s stands against nothing', async (_, make) => {
    await make()
    expect([await errors(), await upgrade()]).toEqual([[], ''])
  })
})

test('ignoreNodeWright lets pass what NodeWright has done, and nothing that still runs', async () => {
  const ignoring = ['--set', 'ignoreNodeWright=true']
  await serveNodeWrights('tuning')
  await createSkyhook('tuning')
  await createNode('node-1', 'tuning')
  expect([await upgrade(...ignoring), await errors()]).toEqual(['', []])
  await createJob('tuning-apply')
  await createOperator('nodewright-controller-manager')
  await createWebhook('Validating', 'nodewright-validating-webhook')
  expect((await errors()).map(([id]) => id).toSorted()).toEqual([
    'nodewright-job',
    'operator-running',
    'operator-webhook',
  ])
  const refusal = await upgrade(...ignoring)
  expect(refusal.split('\n').filter((line) => line.includes(': kubectl '))).toHaveLength(3)
  expect(refusal).not.toContain(ignore)
})

test('helm template sees the served group, and does not say that there are no NodeWrights', async () => {
  const template = ['template', 'skyhookd', chart, '--api-versions', `${group}/v1alpha1/NodeWright`]
  const refusal = await cluster.helm(...template).then(() => '', String)
  expect(refusal).toContain('helm cannot see its NodeWrights here')
  expect(refusal).not.toContain('kubectl delete')
  await expect(cluster.helm(...template, '--set', 'ignoreNodeWright=true')).resolves.toContain('kind: DaemonSet')
})

test('helm names the right that it lacks for the look, and installs without the look', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'installer' }
  const { body } = await cluster.admin('GET', '/apis')
  const groups = (body as { groups: { name: string }[] }).groups.map(({ name }) => name)
  const allowed = ['', ...groups.filter((name) => name !== 'batch')]
  await create(`${rbac}/clusterroles`, {
    ...meta(role.name),
    rules: [{ apiGroups: allowed, resources: ['*'], verbs: ['*'] }],
  })
  const subjects = [{ apiGroup: role.apiGroup, kind: 'User', name: 'installer' }]
  await create(`${rbac}/clusterrolebindings`, { ...meta(role.name), roleRef: role, subjects })
  await createSkyhook('tuning')
  const asInstaller = ['--kube-as-user', 'installer']
  expect(await upgrade(...asInstaller)).toContain('User "installer" cannot list resource "jobs" in API group "batch"')
  expect(await upgrade(...asInstaller, '--set', 'takeoverCheck=false')).toBe('')
})

const now = '2026-01-01T00:00:00Z'
const completed = {
  startTime: now,
  completionTime: now,
  succeeded: 1,
  conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True', lastTransitionTime: now })),
}
