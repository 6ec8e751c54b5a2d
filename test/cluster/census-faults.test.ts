/**
 * The census writes nothing when its answers are wrong or refused. On a real API server behind a proxy that answers in
 * its place.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test, vi } from 'vitest'
import { conditionOf, type SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { ledgerName } from '../../src/lease/names.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { startInstalledCluster } from './chart-cluster.ts'
import { leasesPath, namespace, startCensusCluster, type CensusCluster, type RunningCensus } from './census-cluster.ts'
import { startFaultProxy, type ProxiedRequest, type Fault, type FaultProxy } from './fault-proxy.ts'

const nodes = ['n1', 'n2', 'n3']
const skyhookSpec: SkyhookSpec = { packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning' } } }

let cluster: CensusCluster
let proxy: FaultProxy
let census: RunningCensus
let skyhook: Skyhook
let number = 0

beforeAll(async () => {
  cluster = await startCensusCluster(await startInstalledCluster())
  for (const node of nodes) await cluster.createNode(node)
  proxy = await startFaultProxy(cluster.cluster.server.url, cluster.ca)
  census = await cluster.census('n1', { server: proxy.url })
})
afterAll(async () => {
  await census?.stop()
  await proxy?.close()
  await cluster?.stop()
})

beforeEach(async () => {
  skyhook = await cluster.apply(`s${++number}`, skyhookSpec)
  for (const node of nodes) await publish(node, 'complete')
  await ready('True')
})
afterEach(() => proxy.inject(undefined))

const publish = async (node: string, status: string): Promise<void> =>
  await cluster.publish(node, skyhook.metadata.name, {
    status,
    entries: { tuning: 'config/complete' },
    applied: skyhookSpec,
  })
const status = async (): Promise<SkyhookStatus> => await cluster.status(skyhook.metadata.name)
const ready = async (word: string, timeout = 45_000): Promise<void> =>
  await vi.waitFor(async () => expect(conditionOf(await status(), 'Ready')?.status).toBe(word), {
    timeout,
    interval: 50,
  })

/** The resourceVersions of everything that the census writes. */
async function written(): Promise<unknown> {
  const ledger = await cluster.admin.json<KubeObject>('GET', `${leasesPath}/${ledgerName(skyhook.metadata)}`)
  return [(await cluster.get(skyhook.metadata.name)).metadata.resourceVersion, ledger.metadata.resourceVersion]
}

const nodePath = '/api/v1/nodes'
const podPath = `/api/v1/namespaces/${namespace}/pods`
const skyhookPath = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
const only =
  (path: string, fault: Fault) =>
  (proxied: ProxiedRequest): Fault | undefined =>
    proxied.path === path ? fault : undefined
/** Ends watches with 410, so that the next LIST is the faulty one. */
const emptyList =
  (path: string) =>
  (proxied: ProxiedRequest): Fault | undefined =>
    proxied.path !== path ? undefined : proxied.isWatch ? { status: 410, reason: 'Expired' } : 'empty-list'

describe('faulty answers', () => {
  test.each<[string, (proxied: ProxiedRequest) => Fault | undefined]>([
    ['Nodes are refused (403)', only(nodePath, { status: 403, reason: 'Forbidden' })],
    ['the list of Nodes is empty', emptyList(nodePath)],
    ['Skyhooks are refused (403)', only(skyhookPath, { status: 403, reason: 'Forbidden' })],
    ['the list of Skyhooks is empty', emptyList(skyhookPath)],
    [
      'the API server does not know the resource of Skyhooks (404)',
      only(skyhookPath, { status: 404, reason: 'NotFound' }),
    ],
    ['the API server answers every request with an error (500)', () => ({ status: 500 })],
    ['the API server is overloaded (503)', () => ({ status: 503 })],
    ['the API server refuses the token (401)', () => ({ status: 401, reason: 'Unauthorized' })],
  ])('the census writes nothing while %s, and counts again afterwards', async (_, fault) => {
    await sleep(300)
    const before = await written()
    proxy.inject(fault)
    proxy.cut()
    await sleep(200)
    await publish('n2', 'in_progress')
    await sleep(2_500)
    expect(await written()).toEqual(before)
    expect(await status()).toMatchObject({ completeNodes: '3/3', status: 'complete' })
    proxy.inject(undefined)
    await ready('False')
    expect(await status()).toMatchObject({ completeNodes: '2/3', status: 'in_progress' })
    expect(census.deaths).toEqual([])
  })

  test('the census writes nothing while the API server is away, and counts again afterwards', async () => {
    await sleep(300)
    const before = await written()
    await cluster.cluster.server.crash()
    await sleep(1_500)
    await cluster.cluster.server.restart()
    expect(await written()).toEqual(before)
    await publish('n2', 'in_progress')
    await ready('False')
    expect(census.deaths).toEqual([])
  })
})

describe('agents', () => {
  test.each<[string, (proxied: ProxiedRequest) => Fault | undefined]>([
    ['pods are refused (403)', only(podPath, { status: 403, reason: 'Forbidden' })],
    ['the list of pods is empty', emptyList(podPath)],
  ])('the census keeps the last count of agents while %s, and counts the rest', async (_, fault) => {
    proxy.inject(fault)
    proxy.cut()
    await sleep(1_500)
    expect(await status()).toMatchObject({ completeNodes: '3/3', nodesReady: 3 })
    await publish('n2', 'in_progress')
    await ready('False')
    expect(await status()).toMatchObject({ completeNodes: '2/3', nodesReady: 2 })
  })
})

test('the census retries a refused status at growing intervals until the API server accepts it', async () => {
  const before = census.lines.length
  proxy.inject(({ path }) => (path.endsWith('/status') ? { status: 403, reason: 'Forbidden' } : undefined))
  await publish('n2', 'in_progress')
  await sleep(4_000)
  expect(await status()).toMatchObject({ completeNodes: '3/3' })
  const refusals = census.lines
    .slice(before)
    .filter((line) => line.kind === 'log' && line.message === 'census: write failed')
  expect(refusals.length).toBeGreaterThan(1)
  expect(refusals.length).toBeLessThan(8)
  proxy.inject(undefined)
  await ready('False')
})

test('a census whose resource definition is removed and recreated sees no Skyhook, then the new ones', async () => {
  const { kubectl } = cluster.cluster.server
  await kubectl('delete', 'crd', 'skyhooks.skyhook.nvidia.com', '--wait=true', '--timeout=60s')
  await sleep(3_000)
  expect(census.deaths).toEqual([])
  await kubectl('create', '-f', join(import.meta.dirname, '../../crds/skyhook.nvidia.com_skyhooks.yaml'))
  await kubectl('wait', '--for=condition=Established', 'crd/skyhooks.skyhook.nvidia.com', '--timeout=30s')
  skyhook = await vi.waitFor(async () => await cluster.apply(`s${++number}`, skyhookSpec), {
    timeout: 20_000,
    interval: 500,
  })
  for (const node of nodes) await publish(node, 'complete')
  await ready('True', 60_000)
  expect(census.deaths).toEqual([])
})
