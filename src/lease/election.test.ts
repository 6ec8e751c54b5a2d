/** Election against a server that misbehaves. On a real server: test/cluster/election.test.ts. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { leasesPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { microTime, type Lease } from './slot.ts'
import { defaultTiming, isCandidate } from './election-rule.ts'
import { censusLeaseName } from './names.ts'
import { startElection, type Election } from './election.ts'

type Agent = {
  readonly name: string
  readonly election: Election
  readonly stop: AbortController
  readonly transport: KubeTransport
  /** At the Lease. */
  readonly looks: () => number
  readonly terms: { readonly signal: AbortSignal; readonly electedMs: number; lostReason?: string }[]
}

const { renewIntervalMs, lookIntervalMs, resignedDelayMs } = defaultTiming

let api: Sample
let agents: Agent[]
let published: number[]

beforeEach(() => {
  api = sampleServer()
  agents = []
  published = []
})
afterEach(async () => {
  for (const { stop } of agents) stop.abort(new Error('test is over'))
  await pass(60_000)
  await Promise.all(agents.map(({ election }) => election.ended))
})

type Campaign = { readonly agents?: number; readonly counted?: number; readonly countedAtMs?: () => number | undefined }

function campaign(name: string, options: Campaign = {}): Agent {
  const transport = api.connect({ name })
  const stop = new AbortController()
  const terms: Agent['terms'] = []
  const election = startElection(
    { transport, namespace: 'default', clock: api.clock },
    {
      identity: name,
      agents: () => options.agents ?? 3,
      published: () => ({ agents: options.counted, countedAtMs: options.countedAtMs?.() }),
      onAgents: (count) => void published.push(count),
      onElected: (signal) => void terms.push({ signal, electedMs: api.clock.monotonicMs() }),
      onLost: (why) => {
        const term = terms.at(-1)
        if (term !== undefined) term.lostReason = why
      },
      random: createSeededRandom(agents.length + 1),
      signal: stop.signal,
    },
  )
  const looks = (): number => api.sent.filter(({ client, method }) => client === name && method === 'GET').length
  const agent = { name, election, stop, transport, looks, terms }
  agents.push(agent)
  return agent
}

const pass = async (ms: number): Promise<void> => await api.clock.advance(ms)
const requests = (method: string, client?: string): number =>
  api.sent.filter((one) => one.method === method && (client === undefined || one.client === client)).length
const isFrom =
  (name: string, method: string) =>
  (request: { readonly client: string; readonly method: string }): boolean =>
    request.client === name && request.method === method
const lease = (): Lease => api.get(leasesPath, censusLeaseName) as Lease
const leadingAgents = (): Agent[] => agents.filter(({ election }) => election.isLeader())
const currentHolder = (): unknown => lease().spec?.holderIdentity
async function untilLeader(withinMs = 60_000): Promise<Agent> {
  await api.eventually(() => expect(leadingAgents()).toHaveLength(1), withinMs)
  return leadingAgents()[0] as Agent
}
/** Stops the leader, as Kubernetes does. */
async function stopLeader(leader: Agent): Promise<void> {
  leader.stop.abort(new Error('SIGTERM'))
  await pass(0)
  await leader.election.ended
}

test('one of many candidates is elected and stays', async () => {
  for (const name of ['a', 'b', 'c', 'd']) campaign(name)
  const first = await untilLeader()
  for (let round = 0; round < 20; round++) {
    await pass(2_000)
    expect(leadingAgents()).toEqual([first])
    expect(currentHolder()).toBe(first.name)
  }
  expect(first.terms).toHaveLength(1)
})

test('a leader that stops hands over within a look, long before the lease duration', async () => {
  campaign('a')
  campaign('b')
  const first = await untilLeader()
  await stopLeader(first)
  const second = await untilLeader(lookIntervalMs)
  expect(second).not.toBe(first)
  expect(first.terms).toMatchObject([{ lostReason: 'SIGTERM' }])
})

test('a leader whose end cut off its renewal hands over as well', async () => {
  const first = campaign('a')
  await untilLeader()
  api.fault(isFrom('a', 'PUT'), { kind: 'lose-answer' })
  await api.eventually(() => expect(requests('PUT')).toBe(1))
  await stopLeader(first)
  expect(currentHolder()).toBe('')
})

/** When its term ended. */
const untilLost = async ({ terms }: Agent): Promise<number> =>
  await new Promise((resolve) => {
    terms[0]?.signal.addEventListener('abort', () => resolve(api.clock.monotonicMs()))
  })

test('a leader that cannot renew stops leading before another one starts', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  const lostAtMs = untilLost(first)
  api.fault(isFrom('a', 'PUT'), { kind: 'silent' }, 1_000)
  await api.eventually(() => expect(other.terms).toHaveLength(1))
  expect(await lostAtMs).toBeLessThan(other.terms[0]?.electedMs ?? 0)
  expect(first.terms[0]?.lostReason).toBe('the Lease was not renewed in time')
})

test('a leader whose renewals wait for a connection stops leading before another one starts', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  const lostAtMs = untilLost(first)
  const isHanging = ({ path }: { readonly path: string }): boolean => path === '/hanging'
  api.fault(isHanging, { kind: 'silent' }, 8)
  const hang = async (): Promise<unknown> =>
    await first.transport.json('POST', '/hanging', { body: {}, timeoutMs: 50_000 }).catch(() => undefined)
  const hanging = Array.from({ length: 8 }, hang)
  await api.eventually(() => expect(other.terms).toHaveLength(1))
  expect(await lostAtMs).toBeLessThan(other.terms[0]?.electedMs ?? 0)
  expect(first.terms[0]?.lostReason).toBe('the Lease was not renewed in time')
  await pass(50_000)
  await Promise.all(hanging)
})

test('a write by a person into the Lease does not end the term', async () => {
  const first = campaign('a')
  await untilLeader()
  for (let turn = 0; turn < 5; turn++) {
    const { metadata, ...rest } = lease()
    api.put(leasesPath, { ...rest, metadata: { ...metadata, annotations: { turn: String(turn) } } })
    await pass(4_000)
  }
  expect(first.election.isLeader()).toBe(true)
  expect(first.terms).toHaveLength(1)
})

test('another holder in the Lease ends the term', async () => {
  const first = campaign('a')
  await untilLeader()
  api.put(leasesPath, {
    ...lease(),
    spec: { holderIdentity: 'somebody', renewTime: microTime(api.clock.wallMs()) },
  })
  await api.eventually(() => expect(first.terms[0]?.lostReason).toBe('somebody holds the Lease now'))
  await untilLeader() // who never renews: it is taken again
})

test('a deleted Lease is created again', async () => {
  campaign('a')
  await untilLeader()
  api.remove(leasesPath, censusLeaseName)
  await api.eventually(() => expect(api.get(leasesPath, censusLeaseName)).toBeDefined())
  expect(currentHolder()).toBe('a')
  await untilLeader()
})

test('a candidate that has resigned leaves the lead to others and takes it when there is nobody', async () => {
  const first = campaign('a')
  await untilLeader()
  const other = campaign('b')
  first.election.resign(600_000, 'the census died twice')
  await pass(0)
  expect(await untilLeader()).toBe(other)
  expect(first.terms[0]?.lostReason).toBe('the census died twice')
  await stopLeader(other)
  await pass(resignedDelayMs)
  expect(leadingAgents()).toEqual([])
  expect(await untilLeader()).toBe(first)
})

test('a failed request is repeated, and a lost answer does not make two leaders', async () => {
  api.fault(() => true, { kind: 'refuse', code: 500 }, 2)
  api.fault(({ method }) => method === 'POST', { kind: 'lose-answer' })
  campaign('a')
  campaign('b')
  const first = await untilLeader()
  await pass(10_000)
  expect(leadingAgents()).toEqual([first])
})

test('the Lease says since when nobody has counted, across terms, and all who look know it', async () => {
  let countedAtMs: number | undefined
  const first = campaign('a', { countedAtMs: () => countedAtMs })
  const other = campaign('b')
  const uncounted = (): unknown[] => [...new Set(agents.map(({ election }) => election.uncounted()))]
  const since = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
  await untilLeader()
  expect(leadingAgents()).toEqual([first])
  for (let round = 0; round < 30; round++) {
    countedAtMs = api.clock.wallMs()
    await pass(10_000)
    expect(uncounted()).toEqual([undefined])
  }
  const lastMs = countedAtMs ?? 0
  await pass(100_000)
  expect(uncounted()).toEqual([undefined])
  await pass(40_000)
  expect(uncounted()).toEqual([since(lastMs)])
  first.election.resign(1_800_000, 'has not counted') // b has counted nothing either
  await pass(40_000)
  expect(leadingAgents()).toEqual([other])
  expect(uncounted()).toEqual([since(lastMs)])
})

test('where nobody has ever counted, the Lease counts from the first election', async () => {
  const first = campaign('a')
  await untilLeader()
  const electedAt = `${lease().spec?.['acquireTime']}`
  await pass(110_000)
  expect(first.election.uncounted()).toBeUndefined()
  await pass(20_000)
  expect(first.election.uncounted()).toBe(electedAt)
})

test('the leader publishes how many agents it has counted, and candidates read it', async () => {
  campaign('a', { counted: 812 })
  await untilLeader()
  campaign('b')
  await api.eventually(() => expect(published).toContain(812))
})

describe('an agent that is not a candidate', () => {
  const nameOf = (isChosen: boolean): string =>
    Array.from({ length: 100 }, (_, index) => `n${index}`).find((name) => isCandidate(name, 100) === isChosen) as string

  test('an agent that is not a candidate looks once, and again when it is asked to', async () => {
    campaign(nameOf(true), { agents: 100 })
    await untilLeader()
    const from = requests('GET')
    const other = campaign(nameOf(false), { agents: 100 })
    await api.eventually(() => expect(other.looks()).toBe(1))
    other.election.look()
    await api.eventually(() => expect(other.looks()).toBe(2))
    other.election.look() // too soon
    await pass(10_000)
    expect(other.looks()).toBe(2)
    expect(requests('GET')).toBeGreaterThan(from)
  })

  test('an agent that is not a candidate leads when it is asked to look and nobody leads', async () => {
    const first = campaign(nameOf(true), { agents: 100 })
    await untilLeader()
    const other = campaign(nameOf(false), { agents: 100 })
    await api.eventually(() => expect(other.looks()).toBe(1))
    await stopLeader(first)
    await pass(lookIntervalMs)
    expect(other.election.isLeader()).toBe(false)
    other.election.look()
    expect(await untilLeader()).toBe(other)
  })
})

test('a leader whose renewals meet a conflict each time asks less and less often, and resigns in time', async () => {
  const leader = campaign('a')
  await untilLeader()
  api.fault(isFrom('a', 'PUT'), { kind: 'refuse', code: 409, reason: 'Conflict' }, 1_000)
  await api.eventually(() => expect(leader.terms[0]?.lostReason).toBe('the Lease was not renewed in time'))
  expect(requests('PUT')).toBeLessThan(12) // every 200 ms it would be some 25
})

test('a leader whose renewals take effect without an answer continues, with few requests', async () => {
  const leader = campaign('a')
  await untilLeader()
  const from = api.sent.length
  api.fault(isFrom('a', 'PUT'), { kind: 'lose-answer' }, 1_000)
  await pass(10 * renewIntervalMs)
  expect(leader.terms).toHaveLength(1)
  expect(leader.election.isLeader()).toBe(true)
  expect(api.sent.length - from).toBeLessThan(40) // two writes and a look for each of ten renewals
})

test('a candidate that fails to take the Lease asks less and less often, at the longest as often as it looks', async () => {
  api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: 500 }, 1_000)
  campaign('a')
  await pass(17 * lookIntervalMs)
  expect(requests('POST')).toBeGreaterThan(17)
  expect(requests('POST')).toBeLessThan(40)
})

test('a candidate reads the store after a conflict, so an old cache costs no loop of writes', async () => {
  const leader = campaign('b')
  await untilLeader()
  await stopLeader(leader)
  const freeAtMs = api.clock.monotonicMs() // what the cache shows from now on
  await pass(100)
  campaign('c')
  await untilLeader()
  campaign('a')
  for (let passedMs = 0; passedMs < 17 * lookIntervalMs; passedMs += 100) {
    const byMs = api.clock.monotonicMs() - freeAtMs
    api.server.faults.rules = [{ name: 'old cache', fault: { kind: 'stale', byMs } }]
    await pass(100)
  }
  expect(leadingAgents().map(({ name }) => name)).toEqual(['c'])
  const conflicts = requests('PUT', 'a')
  expect(conflicts).toBeGreaterThan(3)
  expect(conflicts).toBeLessThan(30) // one for each look; with a retry from the cache it would be some 170
})
