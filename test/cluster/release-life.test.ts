/** A release under another name in another namespace, from its installation to its end, with helm and a real API server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  return (JSON.parse((body as { data: Record<string, string> }).data['settings.json'] ?? '') as Json)['logLevel']
}
const statusOfRelease = async (): Promise<unknown> =>
  (JSON.parse(await helm('status', '-o', 'json')) as { info: { status: string } }).info.status

beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await helm('install', chart, '--create-namespace')
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

  test('a rollback takes a refused uninstall back', async () => {
    await helm('rollback', '3')
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

function skyhook(called: string, ...finalizers: readonly string[]): Json {
  return {
    apiVersion: 'skyhook.nvidia.com/v1alpha1',
    kind: 'Skyhook',
    metadata: { name: called, finalizers },
    spec: {},
  }
}
