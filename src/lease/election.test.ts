/**
 * Election against a server that misbehaves, a hundred times faster than in a cluster. On a real server:
 * test/cluster/election.test.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { startFakeApiServer, type FakeApiServer, type FakeObject } from '../../test/support/fake-api-server.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { isCandidate } from './election-rule.ts'
import { censusLeaseName } from './election-lease.ts'
import { startElection, type Election } from './election.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const timing = {
  leaseDurationMs: 400,
  renewDeadlineMs: 250,
  renewIntervalMs: 100,
  retryPeriodMs: 50,
  lookIntervalMs: 60,
  resignedDelayMs: 600,
}

type Agent = {
  readonly name: string
  readonly election: Election
  readonly stop: AbortController
  /** At the Lease. */
  readonly looks: () => number
  readonly terms: { readonly signal: AbortSignal; readonly electedMs: number; lostReason?: string }[]
}

let server: FakeApiServer
let transports: KubeTransport[]
let agents: Agent[]
let published: number[]

beforeEach(async () => {
  server = await startFakeApiServer([leasesPath])
  transports = []
  agents = []
  published = []
})
afterEach(async () => {
  for (const { stop } of agents) stop.abort(new Error('test is over'))
  await Promise.all(agents.map(({ election }) => election.ended))
  for (const transport of transports) transport.close()
  await server.stop()
})

function campaign(name: string, options: { readonly agents?: number; readonly counted?: number } = {}): Agent {
  let looks = 0
  const transport = server.connect({ rate: false, onRequest: ({ verb }) => void (verb === 'GET' && looks++) })
  transports.push(transport)
  const stop = new AbortController()
  const terms: Agent['terms'] = []
  const election = startElection(
    { transport, namespace: 'skyhook', clock: systemClock },
    {
      identity: name,
      agents: () => options.agents ?? 3,
      countedAgents: () => options.counted,
      onAgents: (count) => void published.push(count),
      onElected: (signal) => void terms.push({ signal, electedMs: performance.now() }),
      onLost: (why) => {
        const term = terms.at(-1)
        if (term !== undefined) term.lostReason = why
      },
      random: systemRandom,
      signal: stop.signal,
      timing,
    },
  )
  const agent = { name, election, stop, looks: () => looks, terms }
  agents.push(agent)
  return agent
}

const leadingAgents = (): Agent[] => agents.filter(({ election }) => election.isLeader())
const currentHolder = (): unknown =>
  (server.get(leasesPath, censusLeaseName)?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity
async function untilLeader(): Promise<Agent> {
  await vi.waitFor(() => expect(leadingAgents()).toHaveLength(1), { timeout: 3_000, interval: 5 })
  return leadingAgents()[0] as Agent
}

test('one of many candidates is elected and stays', async () => {
  for (const name of ['a', 'b', 'c', 'd']) campaign(name)
  const first = await untilLeader()
  for (let round = 0; round < 20; round++) {
    await sleep(50)
    expect(leadingAgents()).toEqual([first])
    expect(currentHolder()).toBe(first.name)
  }
  expect(first.terms).toHaveLength(1)
})

test('a leader that stops hands over within a look, long before the lease duration', async () => {
  campaign('a')
  campaign('b')
  const first = await untilLeader()
  const startedMs = performance.now()
  first.stop.abort(new Error('SIGTERM'))
  await first.election.ended
  const second = await untilLeader()
  expect(second).not.toBe(first)
  expect(performance.now() - startedMs).toBeLessThan(timing.leaseDurationMs / 2)
  expect(first.terms).toMatchObject([{ lostReason: 'SIGTERM' }])
})

test('a leader whose renewal was cut off by its end hands over as well', async () => {
  const first = campaign('a')
  await untilLeader()
  server.fault(({ method }) => method === 'PUT', { kind: 'lose-answer' })
  await vi.waitFor(() => expect(server.requests.filter(({ method }) => method === 'PUT')).not.toHaveLength(0), {
    interval: 1,
  })
  first.stop.abort(new Error('SIGTERM'))
  await first.election.ended
  expect(currentHolder()).toBe('')
})

test('a leader that cannot renew stops leading before another one starts', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  const lostAt = new Promise<number>((resolve) => {
    first.terms[0]?.signal.addEventListener('abort', () => resolve(performance.now()))
  })
  server.fault(({ method, body }) => method === 'PUT' && isOf(body, 'a'), { kind: 'silent' }, 1_000)
  await vi.waitFor(() => expect(other.terms).toHaveLength(1), { timeout: 3_000, interval: 2 })
  expect(await lostAt).toBeLessThan(other.terms[0]?.electedMs ?? 0)
  expect(first.terms[0]?.lostReason).toBe('the Lease was not renewed in time')
})

test('a leader whose renewals wait for a connection stops leading before another one starts', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  const lostAt = new Promise<number>((resolve) => {
    first.terms[0]?.signal.addEventListener('abort', () => resolve(performance.now()))
  })
  server.fault(({ path }) => path === '/hanging', { kind: 'silent' }, 8)
  const hang = async (): Promise<unknown> =>
    await transports[0]?.json('POST', '/hanging', { body: {}, timeoutMs: 2_000 }).catch(() => undefined)
  const hanging = Array.from({ length: 8 }, hang)
  await vi.waitFor(() => expect(other.terms).toHaveLength(1), { timeout: 3_000, interval: 2 })
  expect(await lostAt).toBeLessThan(other.terms[0]?.electedMs ?? 0)
  expect(first.terms[0]?.lostReason).toBe('the Lease was not renewed in time')
  await Promise.all(hanging)
})

test('a write by a person into the Lease does not end the term', async () => {
  const first = campaign('a')
  await untilLeader()
  for (let turn = 0; turn < 5; turn++) {
    const lease = server.get(leasesPath, censusLeaseName) as FakeObject
    server.put(leasesPath, { ...lease, metadata: { ...lease.metadata, annotations: { turn: String(turn) } } })
    await sleep(80)
  }
  expect(first.election.isLeader()).toBe(true)
  expect(first.terms).toHaveLength(1)
})

test('another holder in the Lease ends the term', async () => {
  const first = campaign('a')
  await untilLeader()
  const lease = server.get(leasesPath, censusLeaseName) as FakeObject
  server.put(leasesPath, { ...lease, spec: { holderIdentity: 'somebody', renewTime: new Date().toISOString() } })
  await vi.waitFor(() => expect(first.terms[0]?.lostReason).toBe('somebody holds the Lease now'))
  await untilLeader() // who never renews: it is taken again
})

test('a deleted Lease is created again', async () => {
  campaign('a')
  await untilLeader()
  server.remove(leasesPath, censusLeaseName)
  await vi.waitFor(() => expect(currentHolder()).toBe('a'), { timeout: 2_000 })
  await untilLeader()
})

test('a candidate that has resigned leaves the lead to others and takes it when there is nobody', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  first.election.resign(60_000, 'the census died twice')
  expect(await untilLeader()).toBe(other)
  expect(first.terms[0]?.lostReason).toBe('the census died twice')
  const startedMs = performance.now()
  other.stop.abort(new Error('SIGTERM'))
  await other.election.ended
  expect(await untilLeader()).toBe(first)
  expect(performance.now() - startedMs).toBeGreaterThan(timing.resignedDelayMs * 0.9)
})

test('a failed request is repeated, and a lost answer does not make two leaders', async () => {
  server.fault(() => true, { kind: 'status', status: 500 }, 2)
  server.fault(({ method }) => method === 'POST', { kind: 'lose-answer' })
  campaign('a')
  campaign('b')
  const first = await untilLeader()
  await sleep(200)
  expect(leadingAgents()).toEqual([first])
})

test('the leader publishes how many agents it has counted, and candidates read it', async () => {
  campaign('a', { counted: 812 })
  await untilLeader()
  campaign('b')
  await vi.waitFor(() => expect(published).toContain(812), { timeout: 2_000 })
})

describe('an agent that is no candidate', () => {
  const nameOf = (isChosen: boolean): string =>
    Array.from({ length: 100 }, (_, index) => `n${index}`).find((name) => isCandidate(name, 100) === isChosen) as string
  const looks = (): number => server.requests.filter(({ method }) => method === 'GET').length

  test('an agent that is no candidate looks once, and again when it is asked to', async () => {
    campaign(nameOf(true), { agents: 100 })
    await untilLeader()
    const from = looks()
    const other = campaign(nameOf(false), { agents: 100 })
    await vi.waitFor(() => expect(other.looks()).toBe(1), { timeout: 2_000 })
    other.election.look()
    await vi.waitFor(() => expect(other.looks()).toBe(2), { timeout: 2_000 })
    other.election.look() // too soon
    await sleep(200)
    expect(other.looks()).toBe(2)
    expect(looks()).toBeGreaterThan(from)
  })

  test('an agent that is no candidate leads when it is asked to look and nobody leads', async () => {
    const first = campaign(nameOf(true), { agents: 100 })
    await untilLeader()
    const other = campaign(nameOf(false), { agents: 100 })
    await vi.waitFor(() => expect(other.looks()).toBe(1), { timeout: 2_000 })
    first.stop.abort(new Error('SIGTERM'))
    await first.election.ended
    await sleep(200)
    expect(other.election.isLeader()).toBe(false)
    other.election.look()
    expect(await untilLeader()).toBe(other)
  })
})

const isOf = (body: unknown, identity: string): boolean =>
  (body as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity === identity

test('a leader whose renewals meet a conflict each time asks less and less often, and resigns in time', async () => {
  const leader = campaign('a')
  await vi.waitFor(() => expect(leader.election.isLeader()).toBe(true))
  let conflicts = 0
  const isRenewal = ({ method }: { readonly method: string }): boolean => method === 'PUT' && ++conflicts > 0
  server.fault(isRenewal, { kind: 'status', status: 409 }, 1_000)
  await vi.waitFor(() => expect(leader.terms[0]?.lostReason).toBe('the Lease was not renewed in time'))
  expect(conflicts).toBeLessThan(12) // every 5 ms it would be some 30
})

/** Each write takes effect, and is answered with 504. */
const failAfterCommit = (): void => server.fault(({ method }) => method === 'PUT', { kind: 'lose-answer' }, 1_000)

test('a leader whose renewals take effect without an answer goes on, with few requests', async () => {
  const leader = campaign('a')
  await untilLeader()
  const from = server.requests.length
  failAfterCommit()
  await sleep(1_000)
  expect(leader.terms).toHaveLength(1)
  expect(leader.election.isLeader()).toBe(true)
  expect(server.requests.length - from).toBeLessThan(40) // two writes and a look for each of ten renewals
})

test('a candidate that fails to take the Lease asks less and less often, at the longest as often as it looks', async () => {
  server.fault(({ method }) => method === 'POST', { kind: 'status', status: 500 }, 1_000)
  campaign('a')
  await sleep(1_000)
  const attempts = server.requests.filter(({ method }) => method === 'POST').length
  expect(attempts).toBeGreaterThan(5)
  expect(attempts).toBeLessThan(40)
})

test('a candidate reads the store after a conflict, so an old cache costs no loop of writes', async () => {
  campaign('b')
  await untilLeader()
  const free = { ...server.get(leasesPath, censusLeaseName), spec: { holderIdentity: '' } }
  await sleep(2 * timing.renewIntervalMs) // renewed: the copy is old
  const fromCache = ({ method, query }: { readonly method: string; readonly query: URLSearchParams }): boolean =>
    method === 'GET' && query.get('resourceVersion') === '0'
  server.fault(fromCache, { kind: 'stream', text: JSON.stringify(free), after: 'end' }, 1_000)
  let conflicts = 0
  server.answerFirst(({ method, body }) => {
    if (method === 'PUT' && isOf(body, 'a')) conflicts++
    return undefined
  })
  campaign('a')
  await sleep(1_000)
  expect(leadingAgents().map(({ name }) => name)).toEqual(['b'])
  expect(conflicts).toBeGreaterThan(3)
  expect(conflicts).toBeLessThan(22) // one for each look; with a retry from the cache it would be some 35
})
