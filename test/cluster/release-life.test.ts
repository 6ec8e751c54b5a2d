/** A release under another name in another namespace, from its installation to its end, with helm and a real API server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readCluster } from '../../src/cli/doctor/read/check-cluster.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import { startApiServer } from './api-server.ts'
import { chart, startChartCluster, until, type ChartCluster, type Json } from './chart-cluster.ts'

const place = 'infra'
const name = 'hosts-skyhookd'
const daemonSet = `/apis/apps/v1/namespaces/${place}/daemonsets/${name}`
const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
const finalizer = 'skyhook.nvidia.com/skyhook'

let cluster: ChartCluster
const helm = async (command: string, ...parameters: readonly string[]): Promise<string> =>
  await cluster.helm(command, 'hosts', ...parameters, '--namespace', place)
const logLevel = async (): Promise<unknown> => {
  const { body } = await cluster.admin('GET', `/api/v1/namespaces/${place}/configmaps/${name}`)
  return (body as { data: Json }).data['logLevel']
}
const statusOfRelease = async (): Promise<unknown> =>
  (JSON.parse(await helm('status', '-o', 'json')) as { info: { status: string } }).info.status

/** What `helm test` says in the first seconds, but that it passes before its policy takes effect, within a second. */
async function answersOfTest(): Promise<ReadonlySet<string>> {
  const answers = new Set<string>()
  const end = performance.now() + 2_000
  while (performance.now() < end) {
    const text = await helm('test').catch(String)
    answers.add(/Phase: +(\w+)/.exec(text)?.[1] ?? /denied request: ([^:;\n]+)/.exec(text)?.[1] ?? text)
  }
  answers.delete('Succeeded')
  return answers
}
const notReady = new Set(['no node runs an agent'])
let firstAnswers: ReadonlySet<string>

beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await helm('install', chart, '--create-namespace')
  firstAnswers = await answersOfTest()
})
afterAll(async () => await cluster?.stop())

describe('another name and namespace', () => {
  test('every object of a release elsewhere has its name and namespace', async () => {
    const manifest = await cluster.helm('get', 'manifest', 'hosts', '--namespace', place)
    expect(manifest).toContain(`name: ${name}`)
    expect(manifest.replaceAll(name, '')).not.toMatch(/^ {2}name: skyhookd\b|namespace: skyhook$/m)
  })

  test('the agents of a release elsewhere change their own Node and no other', async () => {
    for (const node of ['node-1', 'node-2'])
      await cluster.admin('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } })
    let attempt = 0 // kubectl sends nothing for a label that is there already
    const asAgent = async (node: string): Promise<string> =>
      await cluster.server.kubectl(
        `--as=system:serviceaccount:${place}:${name}`,
        '--as-user-extra=authentication.kubernetes.io/node-name=node-1',
        'label',
        'node',
        node,
        `skyhook.nvidia.com/status_demo=attempt-${attempt++}`,
        '--overwrite',
      )
    // a policy takes effect a moment after it was installed
    const refusal = async (): Promise<string> => await asAgent('node-2').then(() => '', String)
    expect(await until(refusal, (text) => text !== '')).toContain("ValidatingAdmissionPolicy 'hosts-skyhookd-own-node'")
    await expect(asAgent('node-1')).resolves.toContain('labeled')
  })
})

describe('helm test', () => {
  const agents = async (status: Json): Promise<void> => {
    const { body } = await cluster.admin('GET', daemonSet)
    const { generation } = (body as { metadata: { generation: number } }).metadata
    const counts = { currentNumberScheduled: 3, numberMisscheduled: 0, observedGeneration: generation, ...status }
    const patch = { status: counts }
    expect(await cluster.admin('PATCH', `${daemonSet}/status`, patch, 'application/merge-patch+json')).toMatchObject({
      status: 200,
    })
  }
  const outcome = async (): Promise<string> => await helm('test').catch(String)

  test('helm test says soon after an installation that no agent is ready', () => {
    expect(firstAnswers).toEqual(notReady)
  })

  test.each<[string, Json, string]>([
    ['no node runs an agent', { desiredNumberScheduled: 0, numberReady: 0 }, 'no node runs an agent'],
    [
      'an agent is not ready',
      { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 2 },
      '2 of 3 agents are ready',
    ],
    [
      'an agent is of an older release',
      { desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3 },
      '1 of 3 agents are of this release',
    ],
    [
      'nobody has looked at the last change',
      { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, observedGeneration: 0 },
      '0 of 3 agents are of this release',
    ],
  ])('helm test fails while %s', async (_, status, words) => {
    await agents(status)
    expect(await until(outcome, (text) => text.includes(words))).toContain('denied request')
  })

  test('helm test passes when every agent is ready, and leaves nothing behind', async () => {
    await agents({ desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3 })
    expect(await until(outcome, (text) => text.includes('Succeeded'))).toContain(`${name}-test`)
    expect(await cluster.admin('GET', `/api/v1/namespaces/${place}/configmaps/${name}-test`)).toMatchObject({
      status: 404,
    })
  })
})

test('a rollback returns to the values before, and keeps the Skyhooks', async () => {
  expect(await cluster.admin('POST', skyhooks, skyhook('kept'))).toMatchObject({ status: 201 })
  await helm('upgrade', chart, '--set', 'logLevel=debug')
  expect(await logLevel()).toBe('debug')
  await helm('rollback', '1')
  expect(await logLevel()).toBe('info')
  expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
})

describe('helm uninstall', () => {
  const uninstall = async (): Promise<string> => await helm('uninstall').catch(String)

  test('helm uninstall refuses while a Skyhook has packages to uninstall, and removes nothing', async () => {
    expect(await cluster.admin('POST', skyhooks, skyhook('tuned', finalizer))).toMatchObject({ status: 201 })
    await seenByPolicies('tuned')
    expect(await uninstall()).toContain('kubectl delete skyhook tuned')
    expect(await cluster.admin('GET', daemonSet)).toMatchObject({ status: 200 })
    expect(await statusOfRelease()).toBe('uninstalling')
  })

  test('the rollback that the refusal names takes a refused uninstall back', async () => {
    const [, revision = ''] = /helm rollback hosts (\d+) -n infra/.exec(await uninstall()) ?? []
    await helm('rollback', revision)
    expect(await statusOfRelease()).toBe('deployed')
    await helm('upgrade', chart, '--set', 'logLevel=warn')
    expect(await logLevel()).toBe('warn')
  })

  test('helm uninstall refuses while agents still uninstall the packages of a deleted Skyhook', async () => {
    expect(await cluster.admin('DELETE', `${skyhooks}/tuned`)).toMatchObject({ status: 200 })
    const refusal = await until(uninstall, (text) => text.includes('is being deleted'))
    expect(refusal).toContain('kubectl wait --for=delete skyhook/tuned')
    expect(await cluster.admin('GET', daemonSet)).toMatchObject({ status: 200 })
  })

  test('helm uninstall with --no-hooks removes the release and leaves the Skyhooks to another one', async () => {
    await helm('uninstall', '--no-hooks')
    expect(await cluster.admin('GET', daemonSet)).toMatchObject({ status: 404 })
    expect(await cluster.admin('GET', `${skyhooks}/tuned`)).toMatchObject({ status: 200 })
    await helm('install', chart)
  })

  test('helm uninstall removes the release once no finalizer is left', async () => {
    await seenByPolicies('tuned')
    const patch = { metadata: { finalizers: [] } }
    await cluster.admin('PATCH', `${skyhooks}/tuned`, patch, 'application/merge-patch+json')
    expect(await until(uninstall, (text) => text.includes('uninstalled'))).not.toContain('denied')
    expect(await cluster.admin('GET', daemonSet)).toMatchObject({ status: 404 })
    expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
    expect(await cluster.admin('GET', `/api/v1/namespaces/${place}/configmaps/${name}-uninstall-check`)).toMatchObject({
      status: 404,
    })
  })

  /** Policies see Skyhooks and take effect a moment after they were written. */
  async function seenByPolicies(skyhookName: string): Promise<void> {
    const labels = { 'skyhook.nvidia.com/helm-hook': 'uninstall', 'app.kubernetes.io/instance': 'hosts' }
    const candidate = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'candidate', labels } }
    const path = `/api/v1/namespaces/${place}/configmaps?dryRun=All`
    await until(
      async () => await cluster.admin('POST', path, candidate),
      ({ message }) => message.includes(skyhookName),
    )
  }
})

describe('a second installation on the same API server', () => {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${place}/leases`

  test('helm test says soon after a second installation that no agent is ready', async () => {
    await helm('install', chart)
    expect(await answersOfTest()).toEqual(notReady)
  })

  test('a node is refused a second slot of a scope', async () => {
    const path = `/api/v1/namespaces/${place}`
    const spec = { nodeName: 'node-1', serviceAccountName: name, containers: [{ name: 'agent', image: 'none' }] }
    expect(await cluster.admin('POST', `${path}/pods`, { metadata: { name: 'agent' }, spec })).toMatchObject({
      status: 201,
    })
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'agent' }
    const created = await cluster.admin('POST', `${path}/serviceaccounts/${name}/token`, { spec: { boundObjectRef } })
    const agent = cluster.as((created.body as { status: { token: string } }).status.token)
    const { body } = await cluster.admin('GET', '/api/v1/nodes/node-1')
    const node = { name: 'node-1', uid: (body as { metadata: { uid: string } }).metadata.uid, bootId: '' }
    const progress = { phase: 'working', generation: 1, packages: [] } as const
    const slot = (index: number): unknown =>
      newLease(skyhookScope({ name: 'kept', uid: 'x' }), { index }, node, progress, 0)
    expect(await cluster.admin('POST', leases, slot(0))).toMatchObject({ status: 201 })
    const refusal = await until(
      async () => await agent('POST', `${leases}?dryRun=All`, slot(1)),
      ({ status }) => status === 422,
    )
    expect(refusal.message).toContain(`'${name}-one-slot'`)
  })

  test('doctor tries the policies, and notices one that the API server does not ask', async () => {
    const request = { namespace: place, clock: systemClock, signal: new AbortController().signal }
    const tried = async (): Promise<unknown> => {
      const { trials } = await readCluster(cluster.server.admin, request, [])
      return trials.known
        ? Object.fromEntries(trials.value.map(({ suffix, outcome }) => [suffix, outcome]))
        : trials.why
    }
    const all = ['own-node', 'skyhooks-by-agents', 'own-slot', 'evictions', 'skyhook-resources', 'one-slot']
    const refusing = Object.fromEntries(all.map((suffix) => [suffix, 'refused']))
    expect(await tried()).toEqual(refusing)
    const bindings = Array.from({ length: 16 }, (_, shard) => `${name}-one-slot-${shard}`)
    await cluster.server.kubectl('delete', 'validatingadmissionpolicybindings', ...bindings)
    const outcomes = await until(tried, (found) => JSON.stringify(found).includes('admitted'))
    expect(outcomes).toEqual({ ...refusing, 'one-slot': 'admitted' })
  })
})

test('a release with another name and namespace takes over the definitions of an uninstalled one, if asked', async () => {
  await helm('uninstall')
  const install = async (...flags: readonly string[]): Promise<string> =>
    await cluster.helm('install', 'other', chart, '--namespace', 'other', '--create-namespace', ...flags)
  await expect(install()).rejects.toThrow('cannot be imported into the current release')
  await install('--take-ownership')
  expect(await cluster.admin('GET', `${skyhooks}/kept`)).toMatchObject({ status: 200 })
})

function skyhook(called: string, ...finalizers: readonly string[]): Json {
  return {
    apiVersion: 'skyhook.nvidia.com/v1alpha1',
    kind: 'Skyhook',
    metadata: { name: called, finalizers },
    spec: {},
  }
}
