/** Election against a server that misbehaves, a hundred times faster than in a cluster. On a real server: test/cluster/election.test.ts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer, type FakeObject } from '../../test/support/fake-api-server.ts'
import { staticCredentials } from '../kube/credentials.ts'
import { createTransport, type Transport } from '../kube/transport.ts'
import { CENSUS_LEASE, startElection, type Election } from './election.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const timing = { durationMs: 400, deadlineMs: 250, renewEveryMs: 100, retryMs: 50, shortestLookMs: 40, longestLookMs: 40, patienceMs: 600 }

type Agent = {
  readonly name: string
  readonly election: Election
  readonly stop: AbortController
  readonly terms: { readonly signal: AbortSignal; readonly electedMs: number; lostBecause?: string }[]
}

let server: FakeApiServer
let transports: Transport[]
let agents: Agent[]

beforeEach(async () => {
  server = await startFakeApiServer([LEASES])
  transports = []
  agents = []
})
afterEach(async () => {
  for (const { stop } of agents) stop.abort(new Error('test is over'))
  await Promise.all(agents.map(({ election }) => election.ended))
  for (const transport of transports) transport.close()
  await server.stop()
})

function stand(name: string): Agent {
  const transport = createTransport({ credentials: staticCredentials({ server: server.url }), version: 'test', rate: false })
  transports.push(transport)
  const stop = new AbortController()
  const terms: Agent['terms'] = []
  const election = startElection(
    { transport, namespace: 'skyhook' },
    {
      identity: name,
      candidates: () => 3,
      onElected: (signal) => void terms.push({ signal, electedMs: performance.now() }),
      onLost: (why) => {
        const term = terms.at(-1)
        if (term !== undefined) term.lostBecause = why
      },
      signal: stop.signal,
      timing,
    },
  )
  const agent = { name, election, stop, terms }
  agents.push(agent)
  return agent
}

const leading = (): Agent[] => agents.filter(({ election }) => election.isLeader())
const holder = (): unknown => (server.get(LEASES, CENSUS_LEASE)?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity
async function leader(): Promise<Agent> {
  await vi.waitFor(() => expect(leading()).toHaveLength(1), { timeout: 3_000, interval: 5 })
  return leading()[0] as Agent
}

test('one of many is elected and stays', async () => {
  for (const name of ['a', 'b', 'c', 'd']) stand(name)
  const first = await leader()
  for (let look = 0; look < 20; look++) {
    await sleep(50)
    expect(leading()).toEqual([first])
    expect(holder()).toBe(first.name)
  }
  expect(first.terms).toHaveLength(1)
})

test('a leader that stops hands over within a look, long before the lease duration', async () => {
  stand('a')
  stand('b')
  const first = await leader()
  const startedMs = performance.now()
  first.stop.abort(new Error('SIGTERM'))
  await first.election.ended
  const second = await leader()
  expect(second).not.toBe(first)
  expect(performance.now() - startedMs).toBeLessThan(timing.durationMs / 2)
  expect(first.terms).toMatchObject([{ lostBecause: 'SIGTERM' }])
})

test('a leader whose renewal was cut off by its end hands over as well', async () => {
  const first = stand('a')
  await leader()
  server.fault(({ method }) => method === 'PUT', { kind: 'lose-answer' })
  await vi.waitFor(() => expect(server.requests.filter(({ method }) => method === 'PUT')).not.toHaveLength(0), { interval: 1 })
  first.stop.abort(new Error('SIGTERM'))
  await first.election.ended
  expect(holder()).toBe('')
})

test('a leader that cannot renew stops leading before another one begins', async () => {
  const first = stand('a')
  await leader()
  const other = stand('b')
  const lostAt = new Promise<number>((resolve) => {
    first.terms[0]?.signal.addEventListener('abort', () => resolve(performance.now()))
  })
  server.fault(({ method, body }) => method === 'PUT' && isOf(body, 'a'), { kind: 'silent' }, 1_000)
  await vi.waitFor(() => expect(other.terms).toHaveLength(1), { timeout: 3_000, interval: 2 })
  expect(await lostAt).toBeLessThan(other.terms[0]?.electedMs ?? 0)
  expect(first.terms[0]?.lostBecause).toBe('the Lease could not be renewed in time')
})

test('what a person writes into the Lease costs nobody the lead', async () => {
  const first = stand('a')
  await leader()
  for (let turn = 0; turn < 5; turn++) {
    const lease = server.get(LEASES, CENSUS_LEASE) as FakeObject
    server.put(LEASES, { ...lease, metadata: { ...lease.metadata, annotations: { turn: String(turn) } } })
    await sleep(80)
  }
  expect(first.election.isLeader()).toBe(true)
  expect(first.terms).toHaveLength(1)
})

test('somebody else in the Lease ends the term', async () => {
  const first = stand('a')
  await leader()
  const lease = server.get(LEASES, CENSUS_LEASE) as FakeObject
  server.put(LEASES, { ...lease, spec: { holderIdentity: 'somebody', renewTime: new Date().toISOString() } })
  await vi.waitFor(() => expect(first.terms[0]?.lostBecause).toBe('somebody holds the Lease now'))
  await leader() // who never renews: it is taken again
})

test('a deleted Lease is made again', async () => {
  stand('a')
  await leader()
  server.remove(LEASES, CENSUS_LEASE)
  await vi.waitFor(() => expect(holder()).toBe('a'), { timeout: 2_000 })
  await leader()
})

test('who stands back leaves the lead to others and takes it when there is nobody', async () => {
  const first = stand('a')
  await leader()
  const other = stand('b')
  first.election.standBack(60_000, 'the census died twice')
  expect(await leader()).toBe(other)
  expect(first.terms[0]?.lostBecause).toBe('the census died twice')
  const startedMs = performance.now()
  other.stop.abort(new Error('SIGTERM'))
  await other.election.ended
  expect(await leader()).toBe(first)
  expect(performance.now() - startedMs).toBeGreaterThan(timing.patienceMs * 0.9)
})

test('a failed request is repeated, a lost answer does not make two leaders', async () => {
  server.fault(() => true, { kind: 'status', status: 500 }, 2)
  server.fault(({ method }) => method === 'POST', { kind: 'lose-answer' })
  stand('a')
  stand('b')
  const first = await leader()
  await sleep(200)
  expect(leading()).toEqual([first])
})

const isOf = (body: unknown, identity: string): boolean =>
  (body as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity === identity
