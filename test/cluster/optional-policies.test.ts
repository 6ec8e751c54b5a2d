/**
 * Policies that do not confine agents, on a real API server: the chart's for new nodes, tried with registrations as a
 * kubelet makes them, and the example of docs/usage/policies.md, tried by people of several groups.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { filesOn } from '../kit/pages/page-examples.ts'
import { isOldest, startApiServer } from './api-server.ts'
import { chart, installChart, startChartCluster, until, type ChartCluster, type Json } from './chart-cluster.ts'

const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
let cluster: ChartCluster
let folder: string

beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-policies-'))
  await installChart(cluster, 'rbac.createSkyhookEditorRole=true')
})
afterAll(async () => {
  await cluster?.stop()
  await rm(folder, { recursive: true })
})

const skyhook = (name: string, spec: Json): Json => ({
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'Skyhook',
  metadata: { name },
  spec,
})
const create = async (name: string, spec: Json): Promise<void> =>
  expect(await cluster.admin('POST', skyhooks, skyhook(name, spec))).toMatchObject({ status: 201, message: '' })

/** `kubectl VERB -f -` as somebody, with the answer of the API server or its refusal. */
async function as(user: string, group: string, verb: readonly string[], object?: Json): Promise<Json | string> {
  const file = join(folder, 'object.json')
  if (object) await writeFile(file, JSON.stringify(object))
  const flags = ['--as', user, '--as-group', group, ...(object ? ['-f', file, '-o', 'json'] : [])]
  return await cluster.server.kubectl(...verb, ...flags).then(
    (text) => (object ? (JSON.parse(text) as Json) : {}),
    (error: unknown) => String(error),
  )
}

// The oldest API server has no MutatingAdmissionPolicy, so the chart installs none.
describe.skipIf(isOldest)('new nodes', () => {
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const mark = 'skyhook.nvidia.com/autoTaint_skyhook.nvidia.com'

  type Registration = { labels?: Json; annotations?: Json; taints?: readonly Json[] }
  type Registered = { metadata: { annotations?: Record<string, string> }; spec: { taints?: Record<string, string>[] } }

  /** What the API server stores of a Node that its kubelet creates; each is removed again. */
  async function register({ labels = {}, annotations, taints }: Registration): Promise<Registered> {
    const name = 'joins'
    const registered = await as(`system:node:${name}`, 'system:nodes', ['create'], {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/os': 'linux', ...labels }, annotations },
      spec: { taints },
    })
    expect(registered).toBeTypeOf('object')
    await cluster.admin('DELETE', `/api/v1/nodes/${name}`)
    return registered as Registered
  }
  const own = ({ spec }: Registered): readonly Json[] => (spec.taints ?? []).filter(({ key }) => key === taint.key)

  beforeAll(async () => {
    expect(own(await register({ labels: { pool: 'gpu' } }))).toEqual([]) // there is no Skyhook
    const asking = { runtimeRequired: true, autoTaintNewNodes: true }
    await create('gpu', { ...asking, nodeSelectors: { matchLabels: { pool: 'gpu' } } })
    await create('gpu-too', { ...asking, nodeSelectors: { matchExpressions: [{ key: 'pool', operator: 'Exists' }] } })
    await create('sites', {
      ...asking,
      nodeSelectors: { matchExpressions: [{ key: 'site', operator: 'In', values: ['lab', 'east'] }] },
    })
    await create('unlabelled', {
      ...asking,
      nodeSelectors: {
        matchLabels: { shelf: 'a' },
        matchExpressions: [{ key: 'pool', operator: 'DoesNotExist' }],
      },
    })
    await create('late', { runtimeRequired: true, nodeSelectors: { matchLabels: { team: 'late' } } })
    await until(
      async () => await register({ labels: { site: 'lab' } }),
      (registered) => own(registered).length > 0,
    )
  })

  const gpu = { labels: { pool: 'gpu' } }
  const others = { taints: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }], annotations: { theirs: 'kept' } }
  const nodewright = { ...taint, key: 'nodewright.nvidia.com' }
  const seen = { 'skyhook.nvidia.com/host': '{}' }
  test.each<[string, 'with the taint and our mark' | 'with the taint' | 'without the taint', Registration]>([
    ['that a Skyhook with autoTaintNewNodes selects', 'with the taint and our mark', { labels: { site: 'lab' } }],
    ['that two of them select, beside what is its own,', 'with the taint and our mark', { ...gpu, ...others }],
    ['that has the taint already', 'with the taint', { ...gpu, taints: [taint] }],
    ["that has NodeWright's taint", 'without the taint', { ...gpu, taints: [nodewright] }],
    ['that no Skyhook selects', 'without the taint', { labels: { site: 'west' } }],
    ['whose Skyhook does not ask for it', 'without the taint', { labels: { team: 'late' } }],
    ['that a label of later may deselect', 'without the taint', { labels: { shelf: 'a' } }],
    ['on which no agent will run', 'without the taint', { labels: { pool: 'gpu', 'kubernetes.io/os': 'windows' } }],
    ['that an agent has seen', 'without the taint', { ...gpu, annotations: seen }],
  ])('a node %s registers %s', async (_, outcome, registration) => {
    const registered = await register(registration)
    const marks = outcome === 'with the taint and our mark' ? { [mark]: 'true' } : {}
    expect(own(registered)).toEqual(outcome === 'without the taint' ? [] : [taint])
    expect(registered.metadata.annotations ?? {}).toEqual({ ...registration.annotations, ...marks })
    expect(registered.spec.taints ?? []).toEqual(expect.arrayContaining([...(registration.taints ?? [])]))
  })

  test('the policy is not there where it is not served or not wanted, or where agents do not run everywhere', async () => {
    const render = async (...set: string[]): Promise<string> =>
      await cluster.helm('template', 'skyhookd', chart, ...set)
    const served = ['--api-versions', 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy']
    expect(await render(...served)).toContain('kind: MutatingAdmissionPolicy\n')
    const kept = '--set-json=affinity={"nodeAffinity":{}}'
    for (const values of [
      [],
      [...served, '--set=taintNewNodes=false'],
      [...served, kept],
      [...served, '--set-json=tolerations=[]'],
    ])
      expect(await render(...values)).not.toContain('MutatingAdmissionPolicy')
  })

  test('the policy uses the taint of the values', async () => {
    const text = await cluster.helm(
      'template',
      'skyhookd',
      chart,
      '--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy',
      '--set=runtimeRequiredTaint=example.com/new=yes:NoExecute',
    )
    expect(text).toContain("{'key': 'example.com/new', 'value': 'yes', 'effect': 'NoExecute'}")
    expect(text).toContain("escapeKey('skyhook.nvidia.com/autoTaint_example.com/new')")
  })
})

describe('the example of which images people may use', () => {
  const digest = `sha256:${'0'.repeat(64)}`
  const withImage = (image: string, more: Json = {}): Json => ({
    packages: { driver: { version: '1.0.0', image, containerSHA: digest, ...more } },
  })
  const gpu = withImage('registry.example.com/gpu/driver')
  const infra = withImage('registry.example.com/infra/agent')
  const alice = async (verb: readonly string[], object?: Json) => await as('alice', 'gpu-team', verb, object)
  const refusal = (words: string): unknown => expect.stringContaining(words)

  beforeAll(async () => {
    for (const group of ['gpu-team', 'fleet-admins', 'guests'])
      await cluster.server.kubectl(
        'create',
        'clusterrolebinding',
        group,
        '--clusterrole=skyhook-editor-role',
        `--group=${group}`,
      )
    const file = join(folder, 'images-by-people.yaml')
    await writeFile(file, filesOn('usage/policies.md').get('images-by-people.yaml') ?? '')
    await cluster.server.kubectl('apply', '-f', file)
    await until(
      async () => await as('eve', 'guests', ['create', '--dry-run=server'], skyhook('candidate', gpu)),
      (answer) => typeof answer === 'string' && answer.includes('images-by-people'),
    )
    expect(await as('root', 'fleet-admins', ['create'], skyhook('infra', infra))).toBeTypeOf('object')
  })

  test('people of a group create, change and delete Skyhooks with images of its folders', async () => {
    expect(await alice(['create'], skyhook('own', gpu))).toBeTypeOf('object')
    expect(await alice(['replace'], skyhook('own', { ...gpu, priority: 10 }))).toBeTypeOf('object')
    expect(await alice(['delete', 'skyhook', 'own'])).toEqual({})
  })

  test.each<[string, Json, string]>([
    ['another folder', infra, 'the groups of alice do not include registry.example.com/infra/agent'],
    [
      'a folder that starts with the same letters',
      withImage('registry.example.com/gpu-of-others/driver'),
      'gpu-of-others',
    ],
    ['another registry', withImage('registry.example.org/gpu/driver'), 'registry.example.org/gpu/driver'],
    ['no digest', withImage('registry.example.com/gpu/driver', { containerSHA: '' }), 'containerSHA of driver'],
  ])('a Skyhook with an image of %s is refused', async (_, spec, words) => {
    expect(await alice(['create'], skyhook('own', spec))).toEqual(refusal(words))
  })

  test("people of another group pause an administrator's Skyhook, and neither change nor delete it", async () => {
    expect(await alice(['annotate', 'skyhook', 'infra', 'skyhook.nvidia.com/pause=true'])).toEqual({})
    const everywhere = { ...infra, nodeSelectors: {}, priority: 10 }
    expect(await alice(['replace'], skyhook('infra', everywhere))).toEqual(refusal('infra/agent'))
    expect(await alice(['replace'], skyhook('infra', gpu))).toEqual(refusal('infra/agent'))
    expect(await alice(['delete', 'skyhook', 'infra'])).toEqual(refusal('infra/agent'))
  })

  test('the policy passes the type check of the API server', async () => {
    const { body } = await cluster.admin(
      'GET',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/images-by-people',
    )
    expect(JSON.stringify(body['status'] ?? {})).not.toContain('expressionWarnings')
  })

  test('the policy for Kyverno says the same, in fields that Kyverno has', () => {
    const files = filesOn('usage/policies.md')
    const [policy] = parseAllDocuments(files.get('images-by-people.yaml') ?? '').map((one) => one.toJS() as Json)
    const kyverno = parse(files.get('images-by-people-kyverno.yaml') ?? '') as Json
    const { validationActions, evaluation, ...shared } = kyverno['spec'] as Json
    expect(shared).toEqual(policy?.['spec'])
    // ValidatingPolicy of policies.kyverno.io/v1, Kyverno 1.17; a scan in the background has no user
    expect(kyverno).toMatchObject({ apiVersion: 'policies.kyverno.io/v1', kind: 'ValidatingPolicy' })
    expect({ validationActions, evaluation }).toEqual({
      validationActions: ['Deny'],
      evaluation: { background: { enabled: false } },
    })
  })
})
