import { expect, test } from 'vitest'
import { isConflict, NoResponseError } from '../../../src/kube/errors.ts'
import { findCordonManager } from '../../../src/kube/node-writer.ts'
import { forEvictions } from '../../../src/kube/transport.ts'
import { Refusal } from './refusals.ts'
import { createLease, createNode, leasesPath, merge, namesOf, nodesPath, sampleServer } from './sample-server.ts'

const refusal = new Refusal(422, 'frozen', { reason: 'Invalid' })

test('an answer is shared by all clients, and nobody can change it', async () => {
  const { admin, connect } = sampleServer()
  await createLease(admin, 'a')
  const one = await admin.json<{ spec: object }>('GET', `${leasesPath}/a`)
  expect(await connect().json('GET', `${leasesPath}/a`)).toBe(one)
  expect(() => Object.assign(one.spec, { holderIdentity: 'me' })).toThrow(TypeError)
})

test('a request takes effect after half its latency and is answered after the other half', async () => {
  const { clock, server, connect } = sampleServer()
  let isAnswered = false
  void createLease(connect({ latencyMs: () => 20 }), 'a').then(() => (isAnswered = true))
  await clock.advance(9)
  expect(namesOf(server, 'leases')).toEqual([])
  await clock.advance(1)
  expect(namesOf(server, 'leases')).toEqual(['a'])
  expect(isAnswered).toBe(false)
  await clock.advance(10)
  expect(isAnswered).toBe(true)
})

test.each([
  [1, ['a']],
  [0, []],
])('a request that is aborted on its way comes through with the probability %d', async (abandonedArrival, expected) => {
  const { clock, server, connect } = sampleServer()
  const abort = new AbortController()
  const client = connect({ latencyMs: () => 20, abandonedArrival })
  const body = { metadata: { name: 'a' }, spec: {} }
  const sent = client.json('POST', leasesPath, { body, signal: abort.signal }).catch((error: unknown) => error)
  abort.abort(new Error('the agent ends'))
  await clock.advance(1_000)
  expect(await sent).toBe(abort.signal.reason)
  expect(namesOf(server, 'leases')).toEqual(expected)
})

test('a client has eight requests on their way at a time', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 100 })
  const all = Array.from({ length: 20 }, async (_, number) => await createLease(client, `l${number}`))
  const counts: number[] = []
  for (let turn = 0; turn < 3; turn++) {
    await clock.advance(100)
    counts.push(server.audit.length)
  }
  await Promise.all(all)
  expect(counts).toEqual([8, 16, 20])
})

test('a request without a connection fails at its timeout, and nothing of it arrives', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 5_000 })
  const all = Array.from({ length: 8 }, async (_, number) => await createLease(client, `l${number}`))
  const abort = new AbortController()
  const body = { metadata: { name: 'late' }, spec: {} }
  const late = client.json('POST', leasesPath, { body, timeoutMs: 500 }).catch((error: unknown) => error)
  const aborted = client.json('POST', leasesPath, { body, signal: abort.signal }).catch((error: unknown) => error)
  abort.abort(new Error('the agent ends'))
  await clock.advance(500)
  expect(await aborted).toBe(abort.signal.reason)
  expect(await late).toMatchObject({ mayHaveBeenSent: false })
  await clock.advance(10_000)
  await Promise.all(all)
  expect(namesOf(server, 'leases')).not.toContain('late')
})

test('evictions have connections of their own', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 100 })
  const evicting = forEvictions(client)
  const all = Array.from({ length: 12 }, async (_, number) => await createLease(evicting, `e${number}`))
  all.push(createLease(client, 'a'))
  await clock.advance(100)
  expect(server.audit).toHaveLength(11)
  await clock.advance(100)
  await Promise.all(all)
})

test('a client with a rate waits for its turn', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ rate: { perSecond: 2, burst: 3 } })
  const all = Array.from({ length: 5 }, async (_, number) => await createLease(client, `l${number}`))
  await clock.advance(0)
  expect(server.audit).toHaveLength(3)
  await clock.advance(1_000)
  await Promise.all(all)
  expect(server.audit).toHaveLength(5)
})

test('a client behind a cut network hears nothing until its timeout, and nothing of it arrives', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 10 })
  const answerLost = createLease(client, 'a').catch((error: unknown) => error)
  await clock.advance(6)
  client.cut()
  const requestLost = createLease(client, 'b').catch((error: unknown) => error)
  await clock.advance(29_990)
  client.heal('resume')
  await clock.advance(100)
  expect(await answerLost).toBeInstanceOf(NoResponseError)
  expect(await requestLost).toMatchObject({ mayHaveBeenSent: true })
  expect(namesOf(server, 'leases')).toEqual(['a'])
  await createLeaseIn(clock, client)
  expect(namesOf(server, 'leases')).toEqual(['a', 'c'])
})

async function createLeaseIn(
  clock: { advance(ms: number): Promise<void> },
  client: Parameters<typeof createLease>[0],
): Promise<void> {
  const created = createLease(client, 'c')
  await clock.advance(10)
  await created
}

test('a client that is killed hears nothing any more, and its watches end at the server', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 20, abandonedArrival: 1 })
  const opening = client.stream(leasesPath, { query: { watch: 1 } })
  await clock.advance(20)
  const heard: string[] = []
  const listen = (what: string, promise: Promise<unknown>): void =>
    void promise.then(
      () => heard.push(what),
      () => heard.push(what),
    )
  listen('event', (await opening)[Symbol.asyncIterator]().next())
  listen('answer', createLease(client, 'a'))
  client.kill()
  listen('answer afterwards', createLease(client, 'b'))
  await clock.advance(60_000)
  expect(heard).toEqual([])
  expect(namesOf(server, 'leases')).toEqual(['a'])
  expect(server.openWatches()).toBe(0)
})

test('a client that is closed does not know what has become of its requests', async () => {
  const { clock, connect } = sampleServer()
  const client = connect({ latencyMs: () => 20 })
  const sent = createLease(client, 'a').catch((error: unknown) => error)
  await clock.advance(5)
  client.close()
  expect(await sent).toMatchObject({ mayHaveBeenSent: true })
})

test('a server that is away refuses connections, and breaks those that it has', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect({ latencyMs: () => 10 })
  const onTheWay = createLease(client, 'a').catch((error: unknown) => error)
  await clock.advance(6)
  server.stop()
  await clock.advance(10)
  expect(await onTheWay).toMatchObject({ mayHaveBeenSent: true })
  expect(namesOf(server, 'leases')).toEqual(['a'])
  const refused = createLease(client, 'b').catch((error: unknown) => error)
  await clock.advance(10)
  expect(await refused).toMatchObject({ mayHaveBeenSent: false })
  server.start()
  const again = createLease(client, 'b')
  await clock.advance(10)
  await again
})

test('the audit log names client, verb, resource and outcome of each request that arrived', async () => {
  const { server, admin, connect } = sampleServer()
  const changes: string[] = []
  const stopObserving = server.observe({
    committed: ({ type, version }, client) => void changes.push(`${client}: ${type} ${version.key}`),
  })
  await createNode(admin, 'n1')
  const agent = connect({ name: 'agent-1' })
  const body = { metadata: { annotations: { a: '1' } } }
  await agent.json('PATCH', `${nodesPath}/n1/status`, { body, contentType: merge })
  await agent.json('PATCH', `${nodesPath}/n1/status`, { body, contentType: merge })
  await expect(createNode(agent, 'n1')).rejects.toMatchObject({ reason: 'AlreadyExists' })
  stopObserving()
  await agent.json('DELETE', `${nodesPath}/n1`)
  expect(
    server.audit.map(({ client, verb, resource, name, code, isCommitted }) =>
      [client, verb, resource, name, code, isCommitted].join(' '),
    ),
  ).toEqual([
    'admin create nodes  201 true',
    'agent-1 patch nodes/status n1 200 true',
    'agent-1 patch nodes/status n1 200 false',
    'agent-1 create nodes  409 false',
    'agent-1 delete nodes n1 200 true',
  ])
  expect(changes).toEqual(['admin: ADDED n1', 'agent-1: MODIFIED n1'])
})

test('an admission rule refuses a write before it takes effect', async () => {
  const { server, admin } = sampleServer()
  const node = await createNode(admin, 'n1')
  server.admission.push((object, previous) => {
    if (previous !== undefined && object.metadata.labels?.['frozen'] !== undefined) throw refusal
  })
  const body = { metadata: { labels: { frozen: 'yes' } } }
  await expect(admin.json('PATCH', `${nodesPath}/n1`, { body, contentType: merge })).rejects.toMatchObject({
    status: 422,
    reason: 'Invalid',
  })
  expect(await admin.json('GET', `${nodesPath}/n1`)).toEqual(node)
})

test('a Node tells who has cordoned it, until somebody uncordons it', async () => {
  const { admin } = sampleServer()
  await createNode(admin, 'n1')
  const setCordon = async (unschedulable: boolean): Promise<unknown> =>
    await admin.json('PATCH', `${nodesPath}/n1`, { body: { spec: { unschedulable } }, contentType: merge })
  await setCordon(true)
  expect(await findCordonManager(admin, `${nodesPath}/n1`, 'skyhookd')).toBe('kubectl')
  await setCordon(false)
  expect(await findCordonManager(admin, `${nodesPath}/n1`, 'skyhookd')).toBeUndefined()
})

test('after a restore of an older copy, its objects and revisions are back and later ones never were', async () => {
  const { server, admin } = sampleServer()
  const a = await createLease(admin, 'a')
  const backup = server.backUp()
  const b = await createLease(admin, 'b')
  await admin.json('DELETE', `${leasesPath}/a`)
  server.restore(backup)
  expect(namesOf(server, 'leases')).toEqual(['a'])
  expect(await admin.json('GET', `${leasesPath}/a`)).toEqual(a)
  const c = await createLease(admin, 'c')
  expect(c.metadata.resourceVersion).toBe(b.metadata.resourceVersion) // given a second time
  const body = { ...c, metadata: { ...c.metadata, resourceVersion: a.metadata.resourceVersion } }
  await expect(admin.json('PUT', `${leasesPath}/c`, { body })).rejects.toSatisfy(isConflict)
})
