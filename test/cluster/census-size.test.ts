/** The cost of the census: the status of 250 and of 1,000 real nodes, and the memory of its process with 5,000. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, expect, test, vi } from 'vitest'
import { createCensusSupervisor } from '../../src/daemon/census/supervisor.ts'
import { censusFlags, startCensusProcess } from '../../src/daemon/platform/census-process.ts'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import type { CensusLine } from '../../src/census/model/messages.ts'
import { conditionOf, type SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { policiesPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { NodeStatus, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { slowness } from '../kit/machine-speed.ts'
import { cpuSeconds, memoryMb, startCensusCluster, type CensusCluster } from './census-cluster.ts'
import { type HttpFront, startHttpFront } from '../kit/api-server/http-front.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const skyhookSpec: SkyhookSpec = { packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning' } } }
const cleanups: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const cleanup of cleanups.toReversed()) await cleanup()
})

const inParallel = async (count: number, task: (at: number) => Promise<void>): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

test('the status of 250 nodes stays small, is written at its pace, and shows completion at once', async () => {
  const cluster: CensusCluster = await startCensusCluster(await borrowChartCluster())
  cleanups.push(async () => await cluster.stop())
  const name = (at: number): string => `node-${String(at).padStart(3, '0')}`
  await inParallel(250, async (at) => await cluster.createNode(name(at)))
  const census = await cluster.census(name(0))
  await cluster.apply('large', skyhookSpec)
  await vi.waitFor(async () => expect((await cluster.status('large')).completeNodes).toBe('0/250'), {
    timeout: 20_000,
    interval: 50,
  })
  const begunMs = performance.now()
  await inParallel(250, async (at) => {
    await cluster.publish(name(at), 'large', { status: 'in_progress', entries: { tuning: 'apply/in_progress' } })
    await cluster.publish(name(at), 'large', {
      status: 'complete',
      entries: { tuning: 'config/complete' },
      applied: skyhookSpec,
    })
  })
  const slowBefore = slowness()
  const doneMs = performance.now()
  await vi.waitFor(async () => expect(conditionOf(await cluster.status('large'), 'Ready')?.status).toBe('True'), {
    timeout: 10_000,
    interval: 20,
  })
  const readyMs = performance.now() - doneMs
  const slow = Math.max(1, (slowBefore + slowness()) / 2)
  const skyhook = await cluster.get('large')
  const kb = Math.round(Buffer.byteLength(JSON.stringify(skyhook)) / 1024)
  const memory = await memoryMb(census.pid() as number)
  await census.stop()
  const writes = census.lines
    .flatMap((line) => (line.kind === 'requests' ? line.counts : []))
    .filter(({ verb }) => verb === 'PUT')
    .reduce((sum, { count }) => sum + count, 0)
  const seconds = (doneMs - begunMs) / 1000
  console.log(
    `250 nodes in ${seconds.toFixed(1)} s: object ${kb} KiB, ${writes} PUTs, last → Ready ${Math.round(readyMs)} ` +
      `ms; census MB`,
    memory,
  )
  expect(kb).toBeLessThan(128)
  expect(Object.keys((skyhook.status as SkyhookStatus).nodeStatus ?? {})).toHaveLength(250)
  expect(readyMs / slow, `${readyMs} ms on a machine ${slow.toFixed(2)} times slower`).toBeLessThan(1_500)
  expect(writes).toBeLessThan(2 * seconds + 10)
  expect(census.deaths).toEqual([])
})

test('an object of 1,000 nodes, 5 packages and 64 compartments stays below 256 KiB in every phase', async () => {
  const cluster: CensusCluster = await startCensusCluster(await borrowChartCluster())
  cleanups.push(async () => await cluster.stop())
  const names = Array.from({ length: 1_000 }, (_, at) => `ip-10-0-${at}.eu-central-1.compute.internal`)
  await inParallel(names.length, async (at) => await cluster.createNode(names[at] ?? '', { tier: `tier-${at % 64}` }))
  const packages = Object.fromEntries(
    ['tuning', 'kernel-settings', 'crash-dumps', 'drivers', 'monitoring'].map((name) => [
      name,
      { version: '1.0.0', image: 'registry.example.com/x' },
    ]),
  )
  const strategy = { exponential: { initialBatch: 1 } }
  await cluster.admin.json('POST', policiesPath, {
    body: {
      ...skyhookTypeMeta,
      kind: 'DeploymentPolicy',
      metadata: { name: 'tiers' },
      spec: {
        default: { budget: { percent: 10 }, strategy },
        compartments: Array.from({ length: 64 }, (_, at) => ({
          name: `a-compartment-with-a-long-name-${at}`,
          selector: { matchLabels: { tier: `tier-${at}` } },
          budget: { percent: 10 },
          strategy,
        })),
      },
    },
  })
  const census = await cluster.census(names[0] ?? '')
  const spec: SkyhookSpec = { packages, deploymentPolicy: 'tiers' }
  await cluster.apply('large', spec)

  const message = 'pod shop/cart-7d8f9c (PodDisruptionBudget shop/cart: 0 allowed), '.repeat(12)
  const phases: readonly (readonly [status: NodeStatus, entry: string, reason?: string])[] = [
    ['in_progress', 'post-interrupt/in_progress', 'DrainBlocked'],
    ['erroring', 'post-interrupt/erroring', 'StepFailed'],
    ['erroring', 'uninstall/unknown', 'StepFailed'],
    ['complete', 'config/complete'],
  ]
  for (const [status, entry, reason] of phases) {
    const entries = Object.fromEntries(Object.keys(packages).map((name) => [name, entry]))
    await inParallel(names.length, async (at) => {
      const why = reason === undefined ? {} : { reason: [reason, `${at}: ${message}`] as const }
      await cluster.publish(names[at] ?? '', 'large', { status, entries, applied: spec, ...why })
    })
    await vi.waitFor(
      async () => {
        const counted = await cluster.status('large')
        expect([counted.status, counted.nodesSelected]).toEqual([status, names.length])
        expect(conditionOf(counted, 'skyhook.nvidia.com/UninstallFailed')?.status).toBe(
          entry.startsWith('uninstall') ? 'True' : 'False',
        )
      },
      { timeout: 60_000, interval: 100 },
    )
    const object = await cluster.get('large')
    const { managedFields } = object.metadata as { readonly managedFields?: readonly unknown[] }
    const kb = Math.round(Buffer.byteLength(JSON.stringify(object)) / 1024)
    const fieldsKb = Math.round(Buffer.byteLength(JSON.stringify(managedFields)) / 1024)
    console.log(`1,000 nodes ${status} ${entry}: object ${kb} KiB, ${fieldsKb} KiB of it managedFields`)
    expect(managedFields?.length).toBeGreaterThan(0)
    expect(Object.keys((object.status as SkyhookStatus).compartmentStatuses ?? {})).toHaveLength(65)
    expect(kb).toBeLessThan(256)
  }
  await census.stop()
  expect(census.deaths).toEqual([])
}, 600_000)

test('5,000 nodes with 60 labels and 5 Skyhooks each fit into the heap of a census', async () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const server = await startHttpFront({ clock: systemClock, random: systemRandom })
  cleanups.push(async () => await server.stop())
  const { hash, text } = {
    hash: appliedHash(skyhookSpec),
    text: JSON.stringify({
      'tuning|1.0.0': {
        name: 'tuning',
        version: '1.0.0',
        image: 'registry.example.com/tuning',
        stage: 'config',
        state: 'complete',
      },
    }),
  }
  server.put('/api/v1/namespaces', { metadata: { name: 'skyhook' } })
  for (let at = 0; at < 5_000; at++) {
    const node = server.put('/api/v1/nodes', { metadata: { name: `node-${at}` } })
    const companion = JSON.stringify({
      v: 1,
      rev: 9,
      sha256: sha256Hex(text),
      nodeUID: node.metadata.uid,
      applied: hash,
    })
    const published = names.map((name) => [
      [`skyhook.nvidia.com/nodeState_${name}`, text],
      [`skyhook.nvidia.com/status_${name}`, 'complete'],
      [`skyhook.nvidia.com/version_${name}`, 'v0.15.0'],
      [`skyhook.nvidia.com/journal_${name}`, companion],
    ])
    const labels = Object.fromEntries(
      Array.from({ length: 60 }, (_, label) => [
        `feature.node.example.com/some-feature-${label}`,
        `value-${label % 7}`,
      ]),
    )
    const annotations = {
      ...Object.fromEntries(published.flat()),
      'example.com/others': 'x'.repeat(2_000),
      'csi.volume.example.com/nodeid': randomUUID(),
    }
    server.put('/api/v1/nodes', {
      metadata: { name: `node-${at}`, labels: { ...labels, 'kubernetes.io/hostname': `node-${at}` }, annotations },
    })
    server.put('/api/v1/namespaces/skyhook/pods', {
      metadata: { name: `agent-of-node-${at}`, labels: { 'app.kubernetes.io/name': 'skyhookd' } },
      spec: { nodeName: `node-${at}`, containers: [{ name: 'agent', image: 'skyhookd' }] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    })
  }
  const skyhookCount = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
  for (const name of names) server.put(skyhookCount, { metadata: { name }, spec: skyhookSpec })

  const { lines, pid, stop } = await runAgainst(server)
  const isCounted = (name: string): boolean =>
    (server.get(skyhookCount, name)?.['status'] as SkyhookStatus | undefined)?.completeNodes === '5000/5000'
  const startedMs = performance.now()
  await vi.waitFor(() => expect(names.every(isCounted)).toBe(true), { timeout: 60_000, interval: 20 })
  const countedMs = performance.now() - startedMs
  const settled = await memoryMb(pid())

  // A rollout of one of them: every node publishes twice.
  for (let at = 0; at < 5_000; at++) {
    for (const status of ['in_progress', 'complete']) {
      const node = server.get('/api/v1/nodes', `node-${at}`)
      const annotations = { ...node?.metadata.annotations, 'skyhook.nvidia.com/status_a': status }
      server.put('/api/v1/nodes', { ...node, metadata: { ...node?.metadata, name: `node-${at}`, annotations } })
    }
    if (at % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 100)) // 1,000 events a second
  }
  const rolled = await memoryMb(pid())
  const cpu = await cpuSeconds(pid())
  await stop()
  console.log(
    `5,000 nodes: counted ${Math.round(countedMs)} ms after the start; MB after the first count`,
    settled,
    'after a rollout',
    rolled,
    `CPU ${cpu} s`,
  )
  expect(lines.filter((line) => line.kind === 'log' && line.level === 'warn')).toEqual([])
  expect(rolled.rss).toBeLessThan(160)
})

async function runAgainst(
  server: HttpFront,
): Promise<{ lines: CensusLine[]; pid: () => number; stop: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'skyhookd-census-'))
  const bundle = join(dir, 'census.cjs')
  const entryPoints = [fileURLToPath(new URL('./census-child.ts', import.meta.url))]
  await build({ entryPoints, bundle: true, platform: 'node', format: 'cjs', outfile: bundle, logLevel: 'error' })
  const lines: CensusLine[] = []
  const term = new AbortController()
  const credentials = JSON.stringify({ server: server.url, token: 'none' })
  const supervisor = createCensusSupervisor({
    settings: () => ({
      v: 1,
      version: 'test',
      nodeName: 'node-0',
      podName: 'agent-of-node-0',
      namespace: 'skyhook',
      agentPodSelector: 'app.kubernetes.io/name=skyhookd',
      defaultBudget: {},
    }),
    start: () =>
      startCensusProcess(['env', `CENSUS_CREDENTIALS=${credentials}`, process.execPath, ...censusFlags, bundle]),
    clock: systemClock,
    onLine: (line) => void lines.push(line),
    onExit: (how) => lines.push({ kind: 'log', level: 'warn', message: how, fields: {} }),
    uncountedMs: () => 0,
    onUnfit: () => {},
  })
  const kept = supervisor.supervise(term.signal)
  const stop = async (): Promise<void> => {
    term.abort(new Error('stopped by the test'))
    await kept
    await rm(dir, { recursive: true, force: true })
  }
  cleanups.push(stop)
  return { lines, pid: () => supervisor.pid() ?? 0, stop }
}
