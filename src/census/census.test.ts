/** A whole census inside this process, against a server of the tests. */
import { beforeEach, expect, test } from 'vitest'
import { eventsPath, nodesPath, podsPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { runCensus } from './census.ts'
import { clusterSubject, type CensusLine } from './model/messages.ts'
import type { SkyhookStatus } from './model/skyhook-status.ts'

let api: Sample
let stop: AbortController
let lines: CensusLine[]

beforeEach(() => {
  api = sampleServer()
  api.put(skyhooksPath, { metadata: { name: 'demo' }, spec: { packages: {} } })
  api.put(podsPath, {
    metadata: { name: 'p1', labels: { app: 'agent' } },
    spec: { nodeName: 'n1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  })
  stop = new AbortController()
  lines = []
})

const run = async (): Promise<void> =>
  await runCensus(
    {
      v: 1,
      version: '1',
      nodeName: 'n1',
      podName: 'p1',
      namespace: 'default',
      agentPodSelector: 'app=agent',
      defaultBudget: {},
    },
    {
      clock: api.clock,
      random: createSeededRandom(1),
      connectApi: (onRequest) => api.connect({ onRequest }),
      emit: (line) => void lines.push(line),
    },
    stop.signal,
  )
const status = (): SkyhookStatus | undefined => api.get(skyhooksPath, 'demo')?.['status'] as SkyhookStatus
const eventually = async (check: () => void): Promise<void> => await api.eventually(check)
async function end(running: Promise<void>): Promise<void> {
  stop.abort(new Error('test is over'))
  await api.clock.advance(60_000)
  await running
}

test('a census writes the status of a Skyhook and reports agents and requests until it is stopped', async () => {
  api.put(nodesPath, { metadata: { name: 'n1' } })
  const running = run()
  await eventually(() => expect(status()).toMatchObject({ status: 'waiting', nodesSelected: 1 }))
  api.put(nodesPath, { metadata: { name: 'n2' } })
  await eventually(() => expect(status()?.nodesSelected).toBe(2))
  await end(running)
  expect(lines.find(({ kind }) => kind === 'log')).toMatchObject({ level: 'info', message: 'census: counting' })
  expect(lines.at(-1)).toMatchObject({ kind: 'heartbeat', agents: 1 })
  const counts = lines.flatMap((line) => (line.kind === 'requests' ? line.counts : []))
  expect(counts).toContainEqual({ verb: 'WATCH', code: 200, count: 4 })
})

test('before any agent is Ready, agents spread their requests by the nodes', async () => {
  api.put(podsPath, { metadata: { name: 'p1', labels: { app: 'agent' } }, spec: { nodeName: 'n1' }, status: {} })
  for (const name of ['n1', 'n2']) api.put(nodesPath, { metadata: { name } })
  const running = run()
  await eventually(() => expect(status()?.nodesSelected).toBe(2))
  await end(running)
  expect(lines.filter(({ kind }) => kind === 'heartbeat').at(-1)).toMatchObject({ agents: 2 })
})

test('a census sends the series of each Skyhook, and withdraws those of a deleted one', async () => {
  api.put(nodesPath, { metadata: { name: 'n1' } })
  const running = run()
  const sent = (): (number | undefined)[] =>
    lines.flatMap((line) =>
      line.kind === 'series' && line.subject === 'demo' ? [line.series?.skyhook_node_target_count?.[0]?.[1]] : [],
    )
  await eventually(() => expect(sent().at(-1)).toBe(1))
  api.put(nodesPath, { metadata: { name: 'n2' } })
  await eventually(() => expect(sent().at(-1)).toBe(2))
  api.remove(skyhooksPath, 'demo')
  await eventually(() => expect(sent().at(-1)).toBeUndefined())
  const cordons = lines.filter((line) => line.kind === 'series' && line.subject === clusterSubject)
  expect(cordons).toEqual([
    { kind: 'series', subject: clusterSubject, series: { skyhookd_fleet_left_over_cordons: [[[], 0]] } },
  ])
  await end(running)
})

const uncountedMs = (): (number | undefined)[] =>
  lines.flatMap((line) => (line.kind === 'heartbeat' ? [line.uncountedMs] : []))

test('a census reports how long ago it last saw all that it counts', async () => {
  api.put(nodesPath, { metadata: { name: 'n1' } })
  const running = run()
  await eventually(() => expect(uncountedMs().at(-1)).toBe(0))
  await api.clock.advance(20_000)
  expect(uncountedMs().slice(-2)).toEqual([0, 0])
  api.remove(nodesPath, 'n1')
  await api.clock.advance(30_000)
  const [before = 0, last = 0] = uncountedMs().slice(-2)
  expect([last - before, last > 20_000, last <= 30_000]).toEqual([10_000, true, true])
  api.put(nodesPath, { metadata: { name: 'n1' } })
  await api.clock.advance(10_000)
  expect(uncountedMs().at(-1)).toBe(0)
  await end(running)
})

test('a census that does not see its own Node counts nothing and warns', async () => {
  api.put(nodesPath, { metadata: { name: 'another' } })
  const running = run()
  await eventually(() => expect(lines.map(({ kind }) => kind)).toContain('heartbeat'))
  expect(uncountedMs()).toEqual([undefined])
  await end(running)
  expect(lines.find(({ kind }) => kind === 'log')).toMatchObject({ level: 'warn', fields: { node: 'n1', nodes: 1 } })
  expect(status()).toBeUndefined()
})

test('a census reports once that the tag of an image is not the version that is pulled', async () => {
  api.put(nodesPath, { metadata: { name: 'n1' } })
  const packages = { p: { name: 'p', version: '1.2.0', image: 'registry.example.com:5000/p:1.1.0' } }
  api.put(skyhooksPath, { metadata: { name: 'demo' }, spec: { packages } })
  const running = run()
  const events = (): string[] =>
    api.sent
      .filter(({ method, path }) => method === 'POST' && path === eventsPath)
      .map(({ body }) => (body as { message: string }).message)
  await eventually(() => expect(events().filter((message) => message.includes('the tag 1.1.0'))).toHaveLength(1))
  await end(running)
})
