import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { startFakeApiServer, type FakeApiServer } from '../../test/support/fake-api-server.ts'
import { sleep } from '../schemas/clock.ts'
import { startEventRecorder, type EventInput, type EventRecorder, type EventTiming } from './events.ts'
import type { KubeTransport } from './transport.ts'

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
  transport = server.connect()
  abort = new AbortController()
})

afterEach(async () => {
  abort.abort()
  transport.close()
  await server.stop()
})

const startRecorder = (timing: Partial<EventTiming> = {}): EventRecorder =>
  startEventRecorder(transport, {
    clock: systemClock,
    random: systemRandom,
    component: 'skyhookd',
    host: 'n',
    signal: abort.signal,
    timing: { countDelayMs: 20, perSecond: 1000, ...timing },
  })
const eventually = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 5_000, interval: 5 })
const requestSummaries = (): string[] =>
  server.requests.map(({ method, body }) => `${method} ${JSON.stringify((body as { count?: number }).count)}`)

test('an Event about a cluster-scoped object is in `default` and names reason, message and source', async () => {
  startRecorder().record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1']))
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

test('repetitions raise the count of the first Event, together and late; another message is another Event', async () => {
  const events = startRecorder()
  for (let i = 0; i < 50; i++) events.record(eventOf('exit 1'))
  events.record(eventOf('exit 2'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 50', 'POST 1']))
  events.record(eventOf('exit 1'))
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 50', 'POST 1', 'PATCH 52']))
})

test('a repetition makes a new Event after the window, or when the server has forgotten the first', async () => {
  const events = startRecorder({ windowMs: 40 })
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1']))
  events.record(eventOf('exit 1'))
  for (const { path, body } of server.requests)
    server.remove(path, (body as { metadata: { name: string } }).metadata.name)
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1', 'PATCH 2', 'POST 2']))
  await sleep(systemClock, 50)
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1', 'PATCH 2', 'POST 2', 'POST 1']))
})

test('a lost answer does not make two Events', async () => {
  server.fault(() => true, { kind: 'lose-answer' })
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1', 'POST 1']))
  expect(new Set(server.requests.map(({ body }) => (body as { metadata: { name: string } }).metadata.name)).size).toBe(
    1,
  )
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1', 'POST 1', 'PATCH 2']))
})

test('record never waits; the queue drops the oldest Events that do not fit', async () => {
  server.fault(() => true, { kind: 'slow', ms: 50 }, 1)
  const events = startRecorder({ maxQueueLength: 3 })
  const started = performance.now()
  for (let i = 0; i < 10; i++) events.record(eventOf(`exit ${i}`))
  expect(performance.now() - started).toBeLessThan(20)
  const sentMessages = (): string[] => server.requests.map(({ body }) => (body as { message: string }).message)
  await eventually(() => expect(sentMessages()).toEqual(['exit 0', 'exit 7', 'exit 8', 'exit 9']))
})

test('a refused Event is dropped without trying again, and the next one of its kind is new', async () => {
  server.fault(() => true, { kind: 'status', status: 403 })
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1']))
  await sleep(systemClock, 50)
  events.record(eventOf('exit 1'))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1', 'POST 1']))
})

test('the rate of Events is bounded', async () => {
  const events = startRecorder({ perSecond: 50, burst: 2 })
  const started = performance.now()
  for (let i = 0; i < 6; i++) events.record(eventOf(`exit ${i}`))
  await eventually(() => expect(server.requests).toHaveLength(6))
  expect(performance.now() - started).toBeGreaterThan(60)
})

test('an over-long message is cut', async () => {
  startRecorder().record(eventOf('x'.repeat(5000)))
  await eventually(() => expect(requestSummaries()).toEqual(['POST 1']))
  expect(server.requests[0]?.body).toMatchObject({ message: `${'x'.repeat(1023)}…` })
})
