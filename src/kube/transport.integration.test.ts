import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type HttpFront, startHttpFront } from '../../test/kit/api-server/http-front.ts'
import { turnsUntil } from '../../test/kit/event-loop.ts'
import { staticCredentials } from '../../test/kit/tool/static-credentials.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../test/kit/virtual-clock.ts'
import type { Credentials } from './credentials.ts'
import {
  apiErrorFrom,
  isConflict,
  isGone,
  isNotFound,
  isTooManyRequests,
  isUnknownOutcome,
  NoResponseError,
} from './errors.ts'
import {
  type CompletedRequest,
  createKubeTransport,
  forEvictions,
  type KubeRequestOptions,
  type KubeTransport,
  type KubeTransportOptions,
} from './transport.ts'

const nodesPath = '/api/v1/nodes'

let server: HttpFront
let transport: KubeTransport
let facts: CompletedRequest[]
/** Timeouts pass when a test says so. */
let clock: VirtualClock

beforeEach(async () => {
  clock = createVirtualClock()
  server = await startHttpFront({ clock, random: createSeededRandom(1) })
  server.put(nodesPath, { metadata: { name: 'a' }, future: { field: 'kept' } })
  facts = []
  transport = connect({ onRequest: (fact) => facts.push(fact) })
})

afterEach(async () => {
  transport.close()
  await server.stop()
})

const connect = (options: Partial<KubeTransportOptions>): KubeTransport =>
  createKubeTransport({ credentials: staticCredentials({ server: server.url }), version: '1.2.3', clock, ...options })

const errorOf = async (call: Promise<unknown>): Promise<unknown> =>
  await call.then(
    () => expect.unreachable('the call was expected to fail'),
    (error: unknown) => error,
  )

const arrivals = async (count: number): Promise<void> => await turnsUntil(() => server.requests.length >= count)

describe('requests', () => {
  test('a request returns the object as it is, unknown fields included', async () => {
    expect(await transport.json('GET', `${nodesPath}/a`)).toMatchObject({
      metadata: { name: 'a' },
      future: { field: 'kept' },
    })
  })

  test('a request names its agent, content type and query, and asks for no compression', async () => {
    await transport.json('PATCH', `${nodesPath}/a`, {
      query: { fieldManager: 'x y', left: undefined },
      body: { metadata: { labels: { l: 'v' } } },
      contentType: 'application/merge-patch+json',
    })
    const [sentRequest] = server.requests
    expect(sentRequest?.headers).toMatchObject({
      'user-agent': 'skyhookd/1.2.3',
      'content-type': 'application/merge-patch+json',
      accept: 'application/json',
    })
    expect(sentRequest?.headers['accept-encoding']).toBeUndefined()
    expect(sentRequest).toMatchObject({ manager: 'x y', query: {} })
  })

  test('requests reuse their connection', async () => {
    for (let i = 0; i < 20; i++) await transport.json('GET', `${nodesPath}/a`)
    expect(server.connections()).toBe(1)
  })

  test('requests share at most 8 connections, and a watch has its own', async () => {
    const watch = await transport.stream(nodesPath, {
      query: { watch: 1, resourceVersion: String(server.simulated.revision()) },
    })
    await Promise.all(Array.from({ length: 40 }, () => transport.json('GET', `${nodesPath}/a`)))
    expect(server.connections()).toBe(9)
    watch.destroy()
  })

  test('onRequest hears verb, code and path of every exchange', async () => {
    await transport.json('GET', `${nodesPath}/a`)
    await errorOf(transport.json('GET', `${nodesPath}/b`))
    server.fault(() => true, { kind: 'lose-request' })
    await errorOf(transport.json('DELETE', `${nodesPath}/a`))
    expect(facts.map(({ verb, code, path }) => `${verb} ${code} ${path}`)).toEqual([
      `GET 200 ${nodesPath}/a`,
      `GET 404 ${nodesPath}/b`,
      `DELETE 0 ${nodesPath}/a`,
    ])
  })
})

test.each(['/k8s/clusters/c-1', '/k8s/clusters/c-1//'])(
  'requests go below the path of a server at %s',
  async (prefix) => {
    const credentials = staticCredentials({ server: `${server.url}${prefix}` })
    const heard: string[] = []
    const client = connect({ credentials, onRequest: ({ path }) => heard.push(path) })
    const error = await errorOf(client.json('GET', `${nodesPath}/a`, { query: { pretty: true } }))
    await errorOf(client.stream(nodesPath, { query: { watch: 1 } }))
    expect(server.requests.map(({ path }) => path)).toEqual([
      `/k8s/clusters/c-1${nodesPath}/a`,
      `/k8s/clusters/c-1${nodesPath}`,
    ])
    expect(heard).toEqual([`${nodesPath}/a`, nodesPath])
    expect(error).toMatchObject({ request: `GET ${nodesPath}/a` })
    client.close()
  },
)

describe('refusals', () => {
  test.each([
    { status: 404, reason: 'NotFound', is: isNotFound },
    { status: 409, reason: 'Conflict', is: isConflict },
    { status: 410, reason: 'Expired', is: isGone },
  ])('$is.name recognizes a $status', async ({ status, reason, is }) => {
    server.fault(() => true, { kind: 'refuse', code: status, reason, message: 'injected' })
    const error = await errorOf(transport.json('GET', `${nodesPath}/a`))
    expect(is(error)).toBe(true)
    expect(error).toMatchObject({ status, reason, message: 'injected' })
    expect(isUnknownOutcome(error)).toBe(false)
  })

  test('a 429 carries Retry-After and is not repeated', async () => {
    server.fault(() => true, { kind: 'refuse', code: 429, retryAfterSeconds: 7 })
    const error = await errorOf(transport.json('POST', nodesPath, { body: {} }))
    expect(isTooManyRequests(error)).toBe(true)
    expect(error).toMatchObject({ retryAfterMs: 7000 })
    expect(server.requests).toHaveLength(1)
  })

  test('a body that is not a Status is kept as text', () => {
    expect(apiErrorFrom(404, undefined, '404 page not found\n')).toMatchObject({
      status: 404,
      reason: 'Unknown',
      message: 'HTTP 404: 404 page not found',
    })
    expect(apiErrorFrom(503, '2', '{"kind":"Sta')).toMatchObject({ status: 503, retryAfterMs: 2000 })
  })
})

describe('lost answers', () => {
  test.each(['lose-request', 'cut-answer', 'lose-answer'] as const)(
    'a connection with %s leaves the outcome of a write unknown',
    async (kind) => {
      server.fault(() => true, { kind })
      const error = await errorOf(transport.json('POST', nodesPath, { body: { metadata: { name: 'b' } } }))
      expect(error).toBeInstanceOf(NoResponseError)
      expect(isUnknownOutcome(error)).toBe(true)
      expect(server.get(nodesPath, 'b') !== undefined).toBe(kind === 'lose-answer')
    },
  )

  test('a request to a silent server fails after the timeout', async () => {
    server.fault(() => true, { kind: 'silent' })
    let error: unknown
    const call = errorOf(transport.json('GET', `${nodesPath}/a`, { timeoutMs: 60 })).then((found) => (error = found))
    await arrivals(1)
    await clock.advance(59)
    expect(error).toBeUndefined()
    await clock.advance(1)
    expect(isUnknownOutcome(await call)).toBe(true)
  })

  test('a request waits for a slow first byte within the timeout', async () => {
    server.fault(() => true, { kind: 'slow', byMs: 1_999 })
    const call = transport.json('GET', `${nodesPath}/a`, { timeoutMs: 2000 })
    await arrivals(1)
    await clock.advance(1_999)
    expect(await call).toMatchObject({ metadata: { name: 'a' } })
  })

  test('a refused connection has done nothing, so the outcome is known', async () => {
    await server.stop()
    const error = await errorOf(transport.json('POST', nodesPath, { body: {} }))
    expect(error).toMatchObject({ name: 'NoResponseError', mayHaveBeenSent: false })
    expect(isUnknownOutcome(error)).toBe(false)
  })

  test('a read survives a kept-alive connection that had died', async () => {
    await transport.json('GET', `${nodesPath}/a`)
    server.fault(() => true, { kind: 'lose-request' }) // the server closes just as the next request arrives
    expect(await transport.json('GET', `${nodesPath}/a`)).toMatchObject({ metadata: { name: 'a' } })
  })

  test('an abort ends the request at once with the reason of the signal', async () => {
    server.fault(() => true, { kind: 'silent' })
    const abort = new AbortController()
    const call = errorOf(transport.json('GET', `${nodesPath}/a`, { signal: abort.signal }))
    await arrivals(1)
    abort.abort(new Error('shutting down'))
    expect(await call).toMatchObject({ message: 'shutting down' })
  })
})

describe('a request that waits for a connection', () => {
  /** All connections for calls are taken by writes that the server never answers. */
  const occupyConnections = async (): Promise<void> => {
    server.fault(({ method }) => method === 'POST', { kind: 'silent' }, 8)
    for (let n = 0; n < 8; n++) void transport.json('POST', nodesPath, { body: {}, timeoutMs: 2_000 }).catch(() => {})
    await arrivals(8)
  }

  /** Makes a request, and returns when it waits with a timeout. */
  async function startWaiting(options: KubeRequestOptions): Promise<{ readonly error: Promise<unknown> }> {
    const timers = clock.pendingTimers
    const error = errorOf(transport.json('DELETE', `${nodesPath}/a`, options))
    await turnsUntil(() => clock.pendingTimers > timers)
    return { error }
  }

  test('a request without a connection fails after its timeout, and has done nothing', async () => {
    await occupyConnections()
    const { error } = await startWaiting({ timeoutMs: 60 })
    await clock.advance(59)
    expect(facts).toEqual([])
    await clock.advance(1)
    expect(await error).toMatchObject({ name: 'NoResponseError', mayHaveBeenSent: false })
    expect(facts.map(({ verb, code }) => `${verb} ${code}`)).toEqual(['DELETE 0'])
  })

  test('an abort ends a request without a connection at once with the reason of the signal', async () => {
    await occupyConnections()
    const abort = new AbortController()
    const { error } = await startWaiting({ signal: abort.signal })
    abort.abort(new Error('shutting down'))
    expect(await error).toMatchObject({ message: 'shutting down' })
  })

  test('a request that was given up is not sent once a connection is free', async () => {
    await occupyConnections()
    const { error } = await startWaiting({ timeoutMs: 20 })
    await clock.advance(20)
    await error
    const answer = transport.json('GET', `${nodesPath}/a`, { timeoutMs: 10_000 })
    await clock.advance(2_000)
    expect(await answer).toMatchObject({ metadata: { name: 'a' } })
    expect(server.requests.filter(({ method }) => method === 'DELETE')).toEqual([])
  })

  test('evictions have their own connections, and nothing else waits for them', async () => {
    const evicting = forEvictions(transport)
    server.fault(({ method }) => method === 'POST', { kind: 'silent' }, 10)
    const evictions = Array.from({ length: 10 }, () => errorOf(evicting.json('POST', nodesPath, { timeoutMs: 1_000 })))
    await arrivals(10)
    expect(await transport.json('GET', `${nodesPath}/a`)).toMatchObject({ metadata: { name: 'a' } })
    await clock.advance(1_000)
    for (const error of await Promise.all(evictions)) expect(isUnknownOutcome(error)).toBe(true)
  })
})

describe('authentication', () => {
  const rotatingCredentials = (isRenewable: boolean): Credentials => {
    let token = 'old'
    return {
      server: server.url,
      isRenewable,
      current: async ({ forceRefresh = false } = {}) => {
        if (forceRefresh) token = 'new'
        return await Promise.resolve({ token, tlsRevision: 1 })
      },
    }
  }
  const refuseOldToken = (): void =>
    server.fault(({ headers }) => headers.authorization === 'Bearer old', { kind: 'refuse', code: 401 }, 9)

  test('a 401 makes the transport read the token again and repeat the request once', async () => {
    refuseOldToken()
    const client = connect({ credentials: rotatingCredentials(true) })
    await client.json('POST', nodesPath, { body: { metadata: { name: 'b' } } })
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new'])
    client.close()
  })

  test('a 401 is final with fixed credentials', async () => {
    refuseOldToken()
    const client = connect({ credentials: rotatingCredentials(false) })
    expect(await errorOf(client.json('GET', nodesPath))).toMatchObject({ status: 401 })
    expect(server.requests).toHaveLength(1)
    client.close()
  })
})

test('the rate limit spreads requests beyond the burst', async () => {
  const sentAtMs: number[] = []
  server.simulated.observe({ answered: () => sentAtMs.push(clock.monotonicMs()) })
  let answered = 0
  const client = connect({ clock, rate: { perSecond: 50, burst: 5 }, onRequest: () => answered++ })
  const all = (async () => {
    for (let i = 0; i < 10; i++) await client.json('GET', `${nodesPath}/a`)
  })()
  for (let sent = 5; sent < 10; sent++) {
    await turnsUntil(() => answered === sent)
    await turnsUntil(() => clock.pendingTimers === 1) // the wait for the next one
    await clock.advance(20)
  }
  await all
  expect(sentAtMs).toEqual([0, 0, 0, 0, 0, 20, 40, 60, 80, 100])
  client.close()
})
