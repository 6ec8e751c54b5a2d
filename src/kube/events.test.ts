import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer } from '../../test/support/fake-api-server.ts'
import { staticCredentials } from './credentials.ts'
import { startEventRecorder, type EventInput, type EventRecorder, type EventTiming } from './events.ts'
import { createKubeTransport, type KubeTransport } from './transport.ts'

const eventsPath = '/api/v1/namespaces/default/events'
const eventOf = (message: string): EventInput => ({
  regarding: { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'node-uid' },
  type: 'Warning',
  reason: 'StepFailed',
  message,
})

let server: FakeApiServer
let transport: KubeTransport
let abort: AbortController

beforeEach(async () => {
  server = await startFakeApiServer([eventsPath])
  transport = createKubeTransport({ credentials: staticCredentials({ server: server.url }), version: 'test' })
  abort = new AbortController()
})

afterEach(async () => {
  abort.abort()
  transport.close()
  await server.stop()
})

const startRecorder = (timing: Partial<EventTiming> = {}): EventRecorder =>
  startEventRecorder(transport, {
    component: 'skyhookd',
    host: 'n',
    signal: abort.signal,
    timing: { countDelayMs: 20, perSecond: 1000, ...timing },
  })
const requestSummaries = (): string[] =>
  server.requests.map(({ method, body }) => `${method} ${JSON.stringify((body as { count?: number }).count)}`)

test('an Event stands in default for a cluster-scoped object and names reason, message and source', async () => {
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await events.flush()
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]?.body).toMatchObject({
    metadata: { namespace: 'default', name: expect.stringMatching(/^n\.[0-9a-f]{16}$/) as unknown },
    involvedObject: { kind: 'Node', uid: 'node-uid' },
    type: 'Warning',
    reason: 'StepFailed',
    message: 'exit 1',
    count: 1,
    source: { component: 'skyhookd', host: 'n' },
  })
})

test('repetitions raise the count of the first, together and late; another message is another Event', async () => {
  const events = startRecorder()
  for (let i = 0; i < 50; i++) events.record(eventOf('exit 1'))
  events.record(eventOf('exit 2'))
  await events.flush()
  expect(requestSummaries()).toEqual(['POST 50', 'POST 1'])
  events.record(eventOf('exit 1'))
  events.record(eventOf('exit 1'))
  await vi.waitFor(() => expect(requestSummaries()).toEqual(['POST 50', 'POST 1', 'PATCH 52']))
})

test('after the window, or when the server has forgotten it, a new Event is made', async () => {
  const events = startRecorder({ windowMs: 40 })
  events.record(eventOf('exit 1'))
  await events.flush()
  events.record(eventOf('exit 1'))
  for (const { path, body } of server.requests)
    server.remove(path, (body as { metadata: { name: string } }).metadata.name)
  await vi.waitFor(() => expect(requestSummaries()).toEqual(['POST 1', 'PATCH 2', 'POST 2']))
  await new Promise((resolve) => setTimeout(resolve, 50))
  events.record(eventOf('exit 1'))
  await events.flush()
  expect(requestSummaries().at(-1)).toBe('POST 1')
})

test('a lost answer does not make two', async () => {
  server.fault(() => true, { kind: 'lose-answer' })
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await events.flush()
  expect(new Set(server.requests.map(({ body }) => (body as { metadata: { name: string } }).metadata.name)).size).toBe(
    1,
  )
  expect(events.dropped()).toBe(0)
})

test('record never waits; what does not fit the queue is dropped, oldest first, and counted', async () => {
  server.fault(() => true, { kind: 'slow', ms: 50 }, 1)
  const events = startRecorder({ maxQueueLength: 3 })
  const started = performance.now()
  for (let i = 0; i < 10; i++) events.record(eventOf(`exit ${i}`))
  expect(performance.now() - started).toBeLessThan(20)
  await events.flush()
  expect(server.requests.map(({ body }) => (body as { message: string }).message)).toEqual([
    'exit 0',
    'exit 7',
    'exit 8',
    'exit 9',
  ])
  expect(events.dropped()).toBe(6)
})

test('a refused Event is dropped without trying again', async () => {
  server.fault(() => true, { kind: 'status', status: 403 })
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await events.flush()
  expect(server.requests).toHaveLength(1)
  expect(events.dropped()).toBe(1)
})

test('the rate is bounded', async () => {
  const events = startRecorder({ perSecond: 50, burst: 2 })
  const started = performance.now()
  for (let i = 0; i < 6; i++) events.record(eventOf(`exit ${i}`))
  await events.flush()
  expect(performance.now() - started).toBeGreaterThan(60)
})

test('an over-long message is cut', async () => {
  const events = startRecorder()
  events.record(eventOf('x'.repeat(5000)))
  await events.flush()
  expect(server.requests[0]?.body).toMatchObject({ message: `${'x'.repeat(1023)}…` })
})
