/** The chart with helm and a real API server: strictly valid, and upgraded and removed without losing Skyhooks. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { startApiServer } from './api-server.ts'
import { chart, installChart, namespace, startChartCluster, type ChartCluster, type Json } from './chart-cluster.ts'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
let cluster: ChartCluster
let folder: string

/** Kinds of the Prometheus operator: their names are all that the chart takes from it. */
const operatorKinds = { PodMonitor: 'podmonitors', PrometheusRule: 'prometheusrules' }
const operatorDefinition = ([kind, plural]: [string, string]): Json => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.monitoring.coreos.com` },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { kind, plural },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  for (const names of Object.entries(operatorKinds))
    expect(await cluster.admin('POST', definitions, operatorDefinition(names))).toMatchObject({ status: 201 })
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-chart-'))
})
afterAll(async () => {
  await cluster?.stop()
  await rm(folder, { recursive: true })
})

/** Writes values to a file. */
async function valuesFile(values: Json): Promise<string> {
  const path = join(folder, 'values.yaml')
  await writeFile(path, JSON.stringify(values))
  return path
}
const render = async (values: Json = {}): Promise<string> =>
  await cluster.helm('template', 'skyhookd', chart, '-f', await valuesFile(values))
async function rendered(kind: string, name: string, values: Json = {}): Promise<Json> {
  const objects = parseAllDocuments(await render(values)).map((document) => document.toJS() as Json | null)
  const found = objects.find((object) => object?.['kind'] === kind && (object['metadata'] as Json)['name'] === name)
  if (!found) throw new Error(`the chart has no ${kind} ${name}`)
  return found
}
const everything: Json = {
  image: { repository: 'registry.example.com:5000/skyhookd', digest: `sha256:${'0'.repeat(64)}` },
  imagePullSecrets: [{ name: 'one' }],
  imagePullSecret: 'two',
  registries: [
    { host: 'registry.example.com:5000', mirrors: ['mirror.example.com'], caSecret: 'ca', plainHTTP: false },
  ],
  proxy: { httpsProxy: 'http://proxy.example.com:3128', noProxy: '10.0.0.0/8' },
  runtimeRequiredTaint: 'example.com/new=yes:NoExecute',
  apiServer: { host: '10.0.0.7', port: 6443 },
  metrics: {
    enabled: true,
    podMonitor: { enabled: true, interval: '15s', labels: { release: 'prometheus' } },
    rules: { enabled: true, labels: { release: 'prometheus' }, runbookUrl: 'https://example.com/alerts.md' },
    dashboard: { enabled: true, annotations: { folder: 'hosts' } },
  },
  drain: { skipNamespaces: [] },
  seLinuxOptions: null,
  affinity: { nodeAffinity: {} },
  podLabels: { team: 'infra' },
  podAnnotations: { note: 'x' },
  serviceAccount: { name: 'agents', annotations: { note: 'x' } },
  rbac: { createSkyhookViewerRole: true, createSkyhookEditorRole: true },
  fullnameOverride: 'hosts',
}

describe('the manifests', () => {
  test.each<[string, Json]>([
    ['by default', {}],
    ['with everything set', everything],
    ['without definitions and priorities', { crds: { install: false }, apiPriority: { enabled: false } }],
  ])('the manifests are strictly valid %s', async (_, values) => {
    const path = join(folder, 'manifests.yaml')
    await writeFile(path, await render(values))
    await cluster.server
      .kubectl('create', 'namespace', namespace)
      .catch((error: unknown) => expect(String(error)).toContain('AlreadyExists'))
    await expect(
      cluster.server.kubectl('create', '--dry-run=server', '--validate=strict', '-f', path),
    ).resolves.toContain('daemonset')
  })

  test.each<[string, Json, readonly Json[]]>([
    ['all taints by default', {}, [{ operator: 'Exists' }]],
    [
      'the runtime-required taints beside those of narrower values',
      { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
      [
        { key: 'gpu', operator: 'Exists' },
        { key: 'skyhook.nvidia.com', operator: 'Exists', effect: 'NoSchedule' },
        { key: 'nodewright.nvidia.com', operator: 'Exists', effect: 'NoSchedule' },
      ],
    ],
    [
      'the one of the values and both known ones',
      { tolerations: [], runtimeRequiredTaint: 'example.com/new=yes:NoExecute' },
      [
        { key: 'example.com/new', operator: 'Exists', effect: 'NoExecute' },
        { key: 'skyhook.nvidia.com', operator: 'Exists', effect: 'NoSchedule' },
        { key: 'nodewright.nvidia.com', operator: 'Exists', effect: 'NoSchedule' },
      ],
    ],
  ])('agents tolerate %s', async (_, values, tolerations) => {
    expect(await rendered('DaemonSet', 'skyhookd', values)).toMatchObject({
      spec: { template: { spec: { tolerations } } },
    })
  })

  test('the policies use the chosen names', async () => {
    const text = JSON.stringify(await rendered('ValidatingAdmissionPolicy', 'hosts-own-node', everything))
    expect(text).toContain('system:serviceaccount:skyhook:agents')
    expect(text).toContain("t.key != 'example.com/new'")
  })

  test('the manifests have neither alerts nor dashboard by default', async () => {
    expect(await render()).not.toMatch(/monitoring\.coreos\.com|grafana_dashboard/)
  })

  test('the manifests have the dashboard as Grafana imports it', async () => {
    const { data, metadata } = (await rendered('ConfigMap', 'hosts-dashboard', everything)) as {
      data: Record<string, string>
      metadata: Json
    }
    expect(metadata).toMatchObject({ labels: { grafana_dashboard: '1' }, annotations: { folder: 'hosts' } })
    const file = JSON.parse(await readFile(join(chart, 'monitoring', 'dashboard.json'), 'utf8')) as Json
    const link = { title: 'What to do about each alert', url: 'https://example.com/alerts.md' }
    expect(JSON.parse(data['skyhookd.json'] ?? '')).toEqual({ ...file, links: [expect.objectContaining(link)] })
  })

  test('the dashboard is that of the file where no runbook is set', async () => {
    const { data } = (await rendered('ConfigMap', 'skyhookd-dashboard', {
      metrics: { dashboard: { enabled: true } },
    })) as { data: Record<string, string> }
    const file = await readFile(join(chart, 'monitoring', 'dashboard.json'), 'utf8')
    expect(JSON.parse(data['skyhookd.json'] ?? '')).toEqual(JSON.parse(file))
  })

  test.each(['podMonitor', 'rules'])('the chart refuses metrics.%s without metrics', async (what) => {
    await expect(render({ metrics: { enabled: false, [what]: { enabled: true } } })).rejects.toThrow(
      `metrics.${what}.enabled needs metrics.enabled`,
    )
  })

  test.each([
    ['default', 'install into a namespace of its own'],
    ['kube-system', 'install into a namespace of its own'],
  ])('the chart refuses namespace %s', async (place, words) => {
    await expect(cluster.helm('template', 'skyhookd', chart, '--namespace', place)).rejects.toThrow(words)
  })

  test('the chart refuses drain.skipNamespaces without a list, which no policy can compare with', async () => {
    await expect(render({ drain: { skipNamespaces: null } })).rejects.toThrow('drain.skipNamespaces is null')
  })

  test('the chart refuses a misspelt value', async () => {
    await expect(render({ logLevle: 'debug' })).rejects.toThrow(/logLevle/)
  })
})

describe('a release', () => {
  const skyhook = { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook', metadata: { name: 'kept' }, spec: {} }
  const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
  const columns = async () => {
    const { body } = await cluster.admin('GET', `${definitions}/skyhooks.skyhook.nvidia.com`)
    return (body['spec'] as { versions: [{ additionalPrinterColumns?: unknown[] }] }).versions[0]
      .additionalPrinterColumns
  }

  test('a release installs, and its policies pass the type check of the API server', async () => {
    await installChart(cluster)
    expect(await cluster.admin('POST', skyhooks, skyhook)).toMatchObject({ status: 201 })
    const { body } = await cluster.admin('GET', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies')
    const items = body['items'] as {
      metadata: { name: string }
      status?: { typeChecking?: { expressionWarnings?: unknown[] } }
    }[]
    expect(items.map(({ metadata }) => metadata.name)).toContain('skyhookd-own-node')
    expect(items.flatMap(({ status }) => status?.typeChecking?.expressionWarnings ?? [])).toEqual([])
  })

  test('an upgrade of the release upgrades the definitions', async () => {
    const wanted = await columns()
    const older = [{ op: 'remove', path: '/spec/versions/0/additionalPrinterColumns' }]
    expect(
      await cluster.admin('PATCH', `${definitions}/skyhooks.skyhook.nvidia.com`, older, 'application/json-patch+json'),
    ).toMatchObject({
      status: 200,
    })
    await cluster.helm('upgrade', 'skyhookd', chart, '--set', 'logLevel=debug', '--force-conflicts')
    expect(await columns()).toEqual(wanted)
  })

  test('a removed release leaves definitions and Skyhooks, and a new one finds them', async () => {
    await cluster.helm('uninstall', 'skyhookd')
    expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
    expect(await cluster.admin('GET', `/apis/apps/v1/namespaces/${namespace}/daemonsets/skyhookd`)).toMatchObject({
      status: 404,
    })
    await installChart(cluster)
    expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
    await cluster.helm('uninstall', 'skyhookd')
  })

  test('a release adopts definitions whose conversion webhook is gone', async () => {
    const source = parse(await readFile(join(chart, '..', 'crds', 'skyhook.nvidia.com_skyhooks.yaml'), 'utf8')) as {
      metadata: Json
      spec: Json
    }
    const clientConfig = { service: { name: 'webhook', namespace, path: '/convert' } }
    source.spec['conversion'] = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
    const file = join(folder, 'definition.json')
    await writeFile(file, JSON.stringify(source))
    await cluster.server.kubectl('replace', '-f', file)

    await cluster.helm('install', 'skyhookd', chart, '--take-ownership', '--force-conflicts')
    expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
    expect(await cluster.admin('POST', skyhooks, { ...skyhook, metadata: { name: 'new' } })).toMatchObject({
      status: 201,
    })

    const plain = [{ op: 'replace', path: '/spec/conversion', value: { strategy: 'None' } }]
    const path = `${definitions}/skyhooks.skyhook.nvidia.com`
    expect(await cluster.admin('PATCH', path, plain, 'application/json-patch+json')).toMatchObject({ status: 200 })
    await cluster.helm('upgrade', 'skyhookd', chart)
  })
})
