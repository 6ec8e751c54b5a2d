/** A whole census inside this process, against a server of the tests. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer } from '../../test/support/fake-api-server.ts'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { runCensus } from './census.ts'
import { clusterSubject, type CensusLine } from './messages.ts'
import type { SkyhookStatus } from './skyhook-status.ts'

const nodesPath = '/api/v1/nodes'
const podsPath = '/api/v1/namespaces/skyhook/pods'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'

let server: FakeApiServer
let stop: AbortController
let lines: CensusLine[]

beforeEach(async () => {
  server = await startFakeApiServer([nodesPath, podsPath, leasesPath, skyhooksPath])
  server.put(skyhooksPath, { metadata: { name: 'demo', generation: 1 }, spec: { packages: {} } })
  server.put(podsPath, {
    metadata: { name: 'p1', labels: { app: 'agent' } },
    spec: { nodeName: 'n1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  })
  stop = new AbortController()
  lines = []
})
afterEach(async () => await server.stop())

const run = async (): Promise<void> =>
  await runCensus(
    {
      v: 1,
      version: '1',
      nodeName: 'n1',
      podName: 'p1',
      namespace: 'skyhook',
      agentPodSelector: 'app=agent',
      defaultBudget: {},
    },
    {
      clock: systemClock,
      random: systemRandom,
      connectApi: (onRequest) => server.connect({ onRequest }),
      emit: (line) => void lines.push(line),
      rssBytes: () => 1,
    },
    stop.signal,
  )
const status = (): SkyhookStatus | undefined => server.get(skyhooksPath, 'demo')?.['status'] as SkyhookStatus
const eventually = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 5_000, interval: 5 })

test('a census writes the status of a Skyhook and reports nodes, agents and requests until it is stopped', async () => {
  server.put(nodesPath, { metadata: { name: 'n1' } })
  const running = run()
  await eventually(() => expect(status()).toMatchObject({ status: 'waiting', nodesSelected: 1 }))
  server.put(nodesPath, { metadata: { name: 'n2' } })
  await eventually(() => expect(status()?.nodesSelected).toBe(2))
  stop.abort(new Error('test is over'))
  await running
  expect(lines.find(({ kind }) => kind === 'log')).toMatchObject({ level: 'info', message: 'census: counting' })
  expect(lines.at(-1)).toEqual({ kind: 'heartbeat', nodes: 2, agents: 1, skyhooks: 1, rssBytes: 1 })
  const counts = lines.flatMap((line) => (line.kind === 'requests' ? line.counts : []))
  expect(counts).toContainEqual({ verb: 'WATCH', code: 200, count: 4 })
})

test('a census sends the series of each Skyhook, and withdraws those of a deleted one', async () => {
  server.put(nodesPath, { metadata: { name: 'n1' } })
  const running = run()
  const sent = (): (number | undefined)[] =>
    lines.flatMap((line) =>
      line.kind === 'series' && line.subject === 'demo' ? [line.series?.skyhook_node_target_count?.[0]?.[1]] : [],
    )
  await eventually(() => expect(sent().at(-1)).toBe(1))
  server.put(nodesPath, { metadata: { name: 'n2' } })
  await eventually(() => expect(sent().at(-1)).toBe(2))
  server.remove(skyhooksPath, 'demo')
  await eventually(() => expect(sent().at(-1)).toBeUndefined())
  const cordons = lines.filter((line) => line.kind === 'series' && line.subject === clusterSubject)
  expect(cordons).toEqual([
    { kind: 'series', subject: clusterSubject, series: { skyhookd_fleet_left_over_cordons: [[[], 0]] } },
  ])
  stop.abort(new Error('test is over'))
  await running
})

test('a census that does not see its own Node counts nothing and warns', async () => {
  server.put(nodesPath, { metadata: { name: 'another' } })
  const running = run()
  await eventually(() => expect(lines.map(({ kind }) => kind)).toContain('heartbeat'))
  stop.abort(new Error('test is over'))
  await running
  expect(lines.find(({ kind }) => kind === 'log')).toMatchObject({ level: 'warn', fields: { node: 'n1', nodes: 1 } })
  expect(status()).toBeUndefined()
})

test('a census says once that the tag of an image is not the version that is pulled', async () => {
  server.put(nodesPath, { metadata: { name: 'n1' } })
  const packages = { p: { name: 'p', version: '1.2.0', image: 'registry.example.com:5000/p:1.1.0' } }
  server.put(skyhooksPath, { metadata: { name: 'demo', generation: 2 }, spec: { packages } })
  const running = run()
  const events = (): string[] =>
    server.requests
      .filter(({ method, path }) => method === 'POST' && path.endsWith('/events'))
      .map(({ body }) => (body as { message: string }).message)
  await eventually(() => expect(events().filter((message) => message.includes('the tag 1.1.0'))).toHaveLength(1))
  stop.abort(new Error('test is over'))
  await running
})
