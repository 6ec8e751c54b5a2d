/** The census as its own process, with the token of an agent, on a real API server with the chart's permissions. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { conditionOf } from '../../src/census/model/skyhook-status.ts'
import { countedScope, type Ledger, readLedger, selectorHash } from '../../src/lease/ledger.ts'
import { ledgerName, skyhookScope } from '../../src/lease/names.ts'
import { effectiveLimit } from '../../src/lease/rule.ts'
import { listScope } from '../../src/lease/slot-reads.ts'
import type { Lease } from '../../src/lease/slot.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import {
  leasesPath,
  memoryMb,
  namespace,
  startCensusCluster,
  type CensusCluster,
  type RunningCensus,
} from './census-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const nodes = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6']
const specAt = (version: string, more: SkyhookSpec = {}): SkyhookSpec => ({
  packages: { tuning: { version, image: 'registry.example.com/tuning' } },
  ...more,
})
const initialSpec = specAt('1.0.0')

let cluster: CensusCluster
let census: RunningCensus | undefined
let number = 0

beforeAll(async () => {
  cluster = await startCensusCluster(await borrowChartCluster())
  for (const node of nodes) await cluster.createNode(node, { pool: 'all' })
})
afterAll(async () => await cluster?.stop())
afterEach(async () => {
  await census?.stop()
  census = undefined
})

/** A Skyhook for one test; its name is also the first part of its ledger's. */
async function apply(spec: SkyhookSpec): Promise<Skyhook> {
  return await cluster.apply(`s${++number}`, spec)
}
async function publishAll(skyhook: Skyhook, spec: SkyhookSpec, on: readonly string[] = nodes): Promise<void> {
  for (const node of on)
    await cluster.publish(node, skyhook.metadata.name, {
      status: 'complete',
      entries: { tuning: 'config/complete' },
      applied: spec,
    })
}
const eventually = async (check: () => unknown, timeout = 10_000): Promise<void> =>
  void (await vi.waitFor(check, { timeout, interval: 30 }))
const conditionText = async ({ metadata }: Skyhook, type: string): Promise<string> => {
  const condition = conditionOf(await cluster.status(metadata.name), type)
  return `${condition?.status} ${condition?.reason} ${condition?.observedGeneration}`
}
async function ledgerOf({ metadata }: Skyhook): Promise<Ledger | undefined> {
  const lease = await cluster.admin.json<Lease>('GET', `${leasesPath}/${ledgerName(metadata)}`).catch(() => undefined)
  const read = lease && readLedger(lease)
  return read?.outcome === 'read' ? read.ledger : undefined
}

describe('a rollout', () => {
  test('the status shows a rollout from its first node to its last', async () => {
    census = await cluster.census('n1')
    const skyhook = await apply(initialSpec)
    const { name } = skyhook.metadata
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('False Waiting 1'))
    expect(await cluster.status(name)).toMatchObject({
      status: 'waiting',
      completeNodes: '0/6',
      nodesPending: 6,
      packageList: 'tuning:1.0.0',
      nodeStatus: { n1: 'waiting', n6: 'waiting' },
    })
    await cluster.publish('n2', name, { status: 'in_progress', entries: { tuning: 'apply/in_progress' } })
    await eventually(async () =>
      expect(await cluster.status(name)).toMatchObject({ status: 'in_progress', nodesInProgress: 1 }),
    )
    await publishAll(skyhook, initialSpec)
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 1'))
    const done = await cluster.status(name)
    expect(done).toMatchObject({
      status: 'complete',
      completeNodes: '6/6',
      nodesReady: 6,
      nodesInProgress: 0,
      observedGeneration: 1,
    })
    expect(done.nodeState?.['n3']).toMatchObject({ 'tuning|1.0.0': { stage: 'config', state: 'complete' } })
    const columns = await cluster.cluster.server.kubectl('get', 'skyhook', name)
    expect(columns.split('\n')[1]).toMatch(new RegExp(`^${name} +complete +200 +\\S+ +0 +6/6 +tuning:1.0.0`))
    expect((await cluster.get(name)).metadata.annotations?.['skyhook.nvidia.com/version']).toBe('v0.15.0')
  })

  test('kubectl waits for the last node and not much longer, and an edit makes it wait again', async () => {
    census = await cluster.census('n1')
    const skyhook = await apply(initialSpec)
    const { name } = skyhook.metadata
    const ended = cluster.cluster.server
      .kubectl('wait', '--for=condition=Ready', `skyhook/${name}`, '--timeout=60s')
      .then(() => performance.now())
    await publishAll(skyhook, initialSpec, nodes.slice(0, 5))
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    await publishAll(skyhook, initialSpec, ['n6'])
    const saidMs = performance.now()
    const tookMs = (await ended) - saidMs
    console.log(`last node done → kubectl wait returns: ${Math.round(tookMs)} ms`)
    expect(tookMs).toBeGreaterThan(-100)
    expect(tookMs).toBeLessThan(onThisMachine(1_500))

    const next = specAt('1.1.0')
    await cluster.edit(name, { spec: next })
    await expect(
      cluster.cluster.server.kubectl('wait', '--for=condition=Ready', `skyhook/${name}`, '--timeout=2s'),
    ).rejects.toThrow(/timed out/)
    expect(await conditionText(skyhook, 'Ready')).toBe('False Waiting 2')
    await publishAll(skyhook, next)
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 2'))
  })

  test('a Skyhook stays complete after an edit that makes no work for any node', async () => {
    census = await cluster.census('n1')
    const skyhook = await apply(initialSpec)
    await publishAll(skyhook, initialSpec)
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 1'))
    const editedMs = performance.now()
    await cluster.edit(skyhook.metadata.name, { spec: { interruptionBudget: { count: 2 } } })
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 2'))
    expect(performance.now() - editedMs).toBeLessThan(onThisMachine(700))
  })

  test('a failure appears in the Stalled condition, and once in an Event on the Skyhook', async () => {
    census = await cluster.census('n1')
    const skyhook = await apply(initialSpec)
    const { name } = skyhook.metadata
    const reason = ['StepFailed', 'package tuning 1.0.0: apply.sh ended with 7'] as const
    await publishAll(skyhook, initialSpec, nodes.slice(2))
    for (const node of ['n1', 'n2'])
      await cluster.publish(node, name, { status: 'erroring', entries: { tuning: 'apply/erroring/3' }, reason })
    await eventually(async () => expect(await conditionText(skyhook, 'Stalled')).toBe('True NodesErroring 1'))
    await eventually(async () => {
      const events = await cluster.cluster.server.kubectl(
        'get',
        'events',
        '-A',
        '-o',
        'json',
        `--field-selector=involvedObject.name=${name}`,
      )
      const reported = (JSON.parse(events) as { items: { reason: string; type: string; message: string }[] }).items
      expect(reported.map(({ reason, type }) => `${type} ${reason}`).toSorted()).toEqual([
        'Warning NodesErroring',
        'Warning StepFailed',
      ])
      expect(reported.find(({ reason }) => reason === 'StepFailed')?.message).toMatch(
        /^n1(, n2)?: package tuning 1.0.0: apply.sh ended with 7$/,
      )
    })
  })

  test('the census counts nodes as they come, go and change their labels', async () => {
    census = await cluster.census('n1')
    const spec = specAt('1.0.0', { nodeSelectors: { matchLabels: { pool: 'few' } } })
    const skyhook = await apply(spec)
    const { name } = skyhook.metadata
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True NoNodeSelected 1'))
    await cluster.label('n1', { pool: 'few' })
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('False Waiting 1'))
    await publishAll(skyhook, spec, ['n1'])
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 1'))
    await cluster.createNode('late', { pool: 'few' })
    await eventually(async () => expect((await cluster.status(name)).completeNodes).toBe('1/2'))
    expect(await conditionText(skyhook, 'Ready')).toBe('False Waiting 1')
    await cluster.deleteNode('late')
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 1'))
    expect((await cluster.status(name)).nodeStatus).toEqual({ n1: 'complete' })
    await cluster.label('n1', { pool: 'all' })
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True NoNodeSelected 1'))
    expect((await cluster.status(name)).nodeState).toEqual({})
  })
})

describe('the ledger', () => {
  test('the ledger turns percentages into numbers, falls at once, rises late and follows the selector', async () => {
    census = await cluster.census('n1')
    const spec = specAt('1.0.0', {
      interruptionBudget: { percent: 34 },
      nodeSelectors: { matchLabels: { pool: 'all' } },
    })
    const skyhook = await apply(spec)
    const limitOf = async (nodeSelectors = spec.nodeSelectors) => {
      const { ledgers } = await listScope(
        { transport: cluster.admin, namespace, clock: systemClock },
        skyhookScope(skyhook.metadata),
      )
      return effectiveLimit(
        { percent: 34 },
        countedScope(ledgers, { skyhook: skyhook.metadata, selectorHash: selectorHash(nodeSelectors) }),
      )
    }
    await eventually(async () => expect(await limitOf()).toBe(2))
    expect(await ledgerOf(skyhook)).toMatchObject({
      agents: 6,
      waiters: 6, // none of them has said that it works
      generation: 1,
      compartments: { '': { matched: 6, completed: 0 } },
    })

    await cluster.label('n6', { pool: 'other' })
    await eventually(async () => expect(await limitOf()).toBe(1))
    await cluster.label('n6', { pool: 'all' })
    const relabelledMs = performance.now()

    const selector = { matchLabels: { pool: 'other' } }
    expect(await limitOf(selector)).toEqual({ unknown: expect.stringContaining('selector') as string })
    await eventually(async () => expect(await limitOf()).toBe(2), 40_000)
    const tookMs = performance.now() - relabelledMs
    console.log(`a node more → a wider budget: ${Math.round(tookMs / 100) / 10} s`)
    expect(tookMs).toBeGreaterThan(29_000)

    await cluster.edit(skyhook.metadata.name, { spec: { nodeSelectors: selector } })
    await eventually(async () => expect(await limitOf(selector)).toBe(1))
    expect(await limitOf()).toEqual({ unknown: expect.any(String) as string })
  })

  test('the census restores a ledger that someone deletes or overwrites', async () => {
    census = await cluster.census('n1')
    const skyhook = await apply(initialSpec)
    await eventually(async () => expect(await ledgerOf(skyhook)).toBeDefined())
    await cluster.admin.json('DELETE', `${leasesPath}/${ledgerName(skyhook.metadata)}`)
    await eventually(async () => expect(await ledgerOf(skyhook)).toBeDefined())
    const body = { metadata: { annotations: { 'skyhook.nvidia.com/ledger': '{"v":1' } } }
    await cluster.admin.json('PATCH', `${leasesPath}/${ledgerName(skyhook.metadata)}`, {
      body,
      contentType: 'application/merge-patch+json',
    })
    await eventually(async () =>
      expect((await ledgerOf(skyhook))?.compartments).toEqual({ '': { matched: 6, completed: 0 } }),
    )
  })
})

describe('deleting a Skyhook', () => {
  const withUninstall = (enabled: boolean): SkyhookSpec => ({
    packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning', uninstall: { enabled } } },
  })
  const isGone = async (name: string): Promise<void> =>
    await expect(cluster.get(name)).rejects.toMatchObject({ status: 404 })

  test('a deletion waits until every node has uninstalled the packages that ask for it', async () => {
    census = await cluster.census('n1')
    const spec = withUninstall(true)
    const skyhook = await apply(spec)
    const { name } = skyhook.metadata
    await publishAll(skyhook, spec)
    await eventually(async () =>
      expect((await cluster.get(name)).metadata.finalizers).toEqual(['skyhook.nvidia.com/skyhook']),
    )
    await cluster.admin.json('DELETE', `/apis/skyhook.nvidia.com/v1alpha1/skyhooks/${name}`)
    await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toMatch(/^False Deleting/))
    for (const node of nodes.slice(0, 5)) await cluster.publish(node, name, { status: 'in_progress' })
    await eventually(async () =>
      expect(conditionOf(await cluster.status(name), 'Ready')?.message).toBe(
        'the Skyhook is being deleted; still uninstalling: n6',
      ),
    )
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect((await cluster.get(name)).metadata.finalizers).toHaveLength(1)
    await cluster.publish('n6', name, { status: 'in_progress' })
    await eventually(async () => await isGone(name))
  })

  test('a pause blocks a deletion, and the status says so', async () => {
    census = await cluster.census('n1')
    const spec = withUninstall(true)
    const skyhook = await apply(spec)
    const { name } = skyhook.metadata
    await publishAll(skyhook, spec, ['n1'])
    await eventually(async () => expect((await cluster.get(name)).metadata.finalizers).toHaveLength(1))
    await cluster.edit(name, { metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } })
    await cluster.admin.json('DELETE', `/apis/skyhook.nvidia.com/v1alpha1/skyhooks/${name}`)
    await eventually(async () => expect(await conditionText(skyhook, 'Stalled')).toMatch(/^True DeletionBlocked/))
    const events = await cluster.cluster.server.kubectl(
      'get',
      'events',
      '-A',
      `--field-selector=involvedObject.name=${name}`,
    )
    expect(events).toContain('DeletionBlocked')
    await cluster.edit(name, { metadata: { annotations: { 'skyhook.nvidia.com/pause': null } } })
    await cluster.publish('n1', name, { status: 'in_progress' })
    await eventually(async () => await isGone(name))
  })

  test('a deletion needs no finalizer where no package asks for it, and removes that of an earlier release', async () => {
    const spec = withUninstall(false)
    const skyhook = await apply(spec)
    const { name } = skyhook.metadata
    await publishAll(skyhook, spec)
    await cluster.edit(name, { metadata: { finalizers: ['example.com/theirs', 'skyhook.nvidia.com/skyhook'] } })
    census = await cluster.census('n1')
    await eventually(async () => expect((await cluster.get(name)).metadata.finalizers).toEqual(['example.com/theirs']))
    await cluster.edit(name, { metadata: { finalizers: null } })
    await cluster.admin.json('DELETE', `/apis/skyhook.nvidia.com/v1alpha1/skyhooks/${name}`)
    await isGone(name)
  })
})

describe('two censuses', () => {
  test('two censuses at once keep one status and one ledger and do not overwrite each other', async () => {
    census = await cluster.census('n1')
    const other = await cluster.census('n2')
    try {
      const skyhook = await apply(initialSpec)
      await publishAll(skyhook, initialSpec)
      await eventually(async () => expect(await conditionText(skyhook, 'Ready')).toBe('True Complete 1'))
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      const { resourceVersion } = (await cluster.get(skyhook.metadata.name)).metadata
      const ledger = await cluster.admin.json<Lease>('GET', `${leasesPath}/${ledgerName(skyhook.metadata)}`)
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      expect((await cluster.get(skyhook.metadata.name)).metadata.resourceVersion).toBe(resourceVersion)
      const later = await cluster.admin.json<Lease>('GET', `${leasesPath}/${ledgerName(skyhook.metadata)}`)
      expect(later.metadata.resourceVersion).toBe(ledger.metadata.resourceVersion)
    } finally {
      await other.stop()
    }
  })
})

test('an idle census writes nothing and ends with its agent', async () => {
  census = await cluster.census('n1')
  await eventually(() => expect(census?.lines.some((line) => line.kind === 'heartbeat')).toBe(true))
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  const versions = async (): Promise<string[]> => {
    const line = '{.kind} {.metadata.namespace} {.metadata.name} {.metadata.resourceVersion}'
    const all = await cluster.cluster.server.kubectl(
      'get',
      'skyhooks,leases',
      '-A',
      '-o',
      `jsonpath={range .items[*]}${line}{"\\n"}{end}`,
    )
    return all.split('\n').filter((one) => !one.startsWith('Lease kube-system ')) // the API server has its own Lease
  }
  const before = await versions()
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(await versions()).toEqual(before)
  const pid = census.pid() as number
  console.log('memory of a census of six nodes, MB:', await memoryMb(pid))
  await census.stop()
  expect(() => process.kill(pid, 0)).toThrow(/ESRCH/)
  expect(census.deaths).toEqual([])
  const warnings = census.lines.filter((line) => line.kind === 'log' && line.level !== 'info' && line.level !== 'debug')
  expect(warnings).toEqual([])
})
