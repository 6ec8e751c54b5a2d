import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/fake-api-server.ts'
import { type FakePlatform, startFakePlatform } from '../../test/support/fake-platform.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../test/support/virtual-clock.ts'
import { hostKey, reasonKey, statusKey } from '../schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../schemas/api.ts'
import type { Journal } from '../schemas/journal.ts'
import type { PackageSpec } from '../schemas/skyhook.ts'
import { runAgent } from './agent.ts'

const nodesPath = '/api/v1/nodes'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const names = ['n1', 'n2', 'n3']

let api: FakeApiServer
let clock: VirtualClock
let hosts: FakePlatform[]
let ended: Promise<number>[]

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath, skyhooksPath, '/api/v1/pods', '/api/v1/namespaces/default/events'])
  clock = createVirtualClock()
  for (const name of names)
    api.put(nodesPath, { metadata: { name, labels: { pool: 'x' } }, spec: {}, status: { conditions: [] } })
  hosts = await Promise.all(
    names.map((nodeName, index) =>
      startFakePlatform({ nodeName, apiUrl: api.url, clock, random: createSeededRandom(index) }),
    ),
  )
  ended = hosts.map(({ settings, platform }) => runAgent(settings, platform))
})

afterEach(async () => {
  for (const host of hosts) host.terminate()
  await pass(areOver(ended))
  for (const host of hosts) await host[Symbol.asyncDispose]()
  await api.stop()
})

/** Lets virtual time pass, and the sockets answer, until the condition holds. */
async function pass(isReached: () => boolean | Promise<boolean>): Promise<void> {
  for (const startMs = performance.now(); performance.now() - startMs < 20_000; ) {
    await clock.advance(20)
    if (await isReached()) return
    await sleep(1)
  }
  expect.fail('the condition does not hold after 20 s')
}

/** Whether all of them have ended with code 0. */
function areOver(agents: readonly Promise<number>[]): () => boolean {
  let areEnded = false
  void Promise.all(agents).then((codes) => (areEnded = codes.every((code) => code === 0)))
  return () => areEnded
}

const statusOf = (name: string): string | undefined =>
  (api.get(nodesPath, name)?.metadata['annotations'] as Record<string, string> | undefined)?.[statusKey('s')]

const reasonOf = (name: string): string => {
  const annotations = api.get(nodesPath, name)?.metadata['annotations'] as Record<string, string> | undefined
  return annotations?.[reasonKey('s')] ?? ''
}

const isSynced = ({ messages }: FakePlatform): boolean => messages().includes('synced')

function createSkyhook(change: Partial<PackageSpec> = {}): void {
  api.put(skyhooksPath, {
    ...skyhookTypeMeta,
    metadata: { name: 's', generation: 1 },
    spec: {
      nodeSelectors: { matchLabels: { pool: 'x' } },
      interruptionBudget: { count: 1 },
      packages: { fake: { version: '1.0.0', image: 'registry.test/fake', ...change } },
    },
  })
}

test('agents beside each other in one process complete a Skyhook each on its own host', async () => {
  await pass(() => hosts.every(isSynced))
  createSkyhook()
  await pass(() => names.every((name) => statusOf(name) === 'complete'))
  for (const { lines, folder } of hosts) {
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
    const journal = JSON.parse(readFileSync(join(folder, '/var/lib/skyhook/.agent/journal.json'), 'utf8')) as Journal
    expect(journal.skyhooks['s']?.packages).toMatchObject({ 'fake|1.0.0': { name: 'fake' } })
  }
})

test('an unfit host says so on its Node, asks for no slot, and works once it is mended', async () => {
  await pass(() => hosts.every(isSynced))
  const annotationOfFirst = (key: string): string =>
    (api.get(nodesPath, 'n1')?.metadata['annotations'] as Record<string, string> | undefined)?.[key] ?? ''
  const shell = join(hosts[0]?.folder ?? '', 'bin/sh')
  const lostShell = 'the host has no /bin/sh, and every step needs it'
  rmSync(shell)
  createSkyhook()
  await pass(() => names.slice(1).every((name) => statusOf(name) === 'complete'))
  await pass(() => annotationOfFirst(reasonKey('s')).includes(lostShell))
  expect(JSON.parse(annotationOfFirst(reasonKey('s')))).toMatchObject({ reason: 'HostUnusable' })
  expect(JSON.parse(annotationOfFirst(hostKey))).toMatchObject({
    findings: [{ id: 'missing-program', severity: 'error', message: lostShell, remedy: 'Install it on the host' }],
  })
  const slotsAskedFor = api.requests.filter(
    ({ method, path, body }) => method === 'POST' && path === leasesPath && JSON.stringify(body).includes('slot-kind'),
  )
  expect(slotsAskedFor.length).toBeGreaterThan(0)
  expect(JSON.stringify(slotsAskedFor.map(({ body }) => body))).not.toContain('"n1"')
  writeFileSync(shell, '')
  await pass(() => statusOf('n1') === 'complete')
  expect(JSON.parse(annotationOfFirst(hostKey))).toMatchObject({ findings: [] })
})

test('each agent has its own log, health and metrics', async () => {
  await pass(() => hosts.every(isSynced))
  await pass(() => hosts.every((host) => host.health()?.ready() === undefined))
  const [first, second] = hosts
  for (const host of hosts) expect(await host.metrics()).toContain('skyhookd_build_info')
  first?.terminate()
  await pass(areOver(ended.slice(0, 1)))
  expect(first?.health()).toBeUndefined()
  expect(second?.health()?.ready()).toBeUndefined()
  const isStopping = (host: FakePlatform | undefined): boolean =>
    host?.messages().includes('agent stopping; running steps continue') === true
  expect([isStopping(first), isStopping(second)]).toEqual([true, false])
})

test('an agent leaves no timer behind', async () => {
  await pass(() => hosts.every(isSynced))
  for (const host of hosts) host.terminate()
  await pass(areOver(ended))
  await clock.advance(60_000)
  expect(clock.pendingTimers).toBe(0)
})

test('an agent whose ten evictions hang goes on writing its Node', async () => {
  await pass(() => hosts.every(isSynced))
  for (const nodeName of names)
    for (let n = 0; n < 10; n++)
      api.put('/api/v1/pods', {
        metadata: { namespace: 'shop', name: `${nodeName}-${n}` },
        spec: { nodeName },
        status: { phase: 'Running' },
      })
  api.answerFirst(({ path }) => (path.startsWith('/api/v1/namespaces/shop/pods/') ? { kind: 'silent' } : undefined))
  createSkyhook({ interrupt: { type: 'service', services: ['cron'] } })
  const evictions = (): number => api.requests.filter(({ path }) => path.includes('/shop/pods/')).length
  await pass(() => evictions() > 0)
  const startMs = clock.monotonicMs()
  await pass(() => evictions() === 10 && names.some((name) => reasonOf(name).includes('DrainBlocked')))
  expect(clock.monotonicMs() - startMs).toBeLessThan(20_000) // an eviction hangs for 30 s
})
