import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventsPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { recordClient, type SentRequest } from '../../test/kit/api-server/sent-requests.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import { startEventRecorder, type EventInput, type EventRecorder, type EventTiming } from './events.ts'
import type { KubeTransport } from './transport.ts'

const eventOf = (message: string): EventInput => ({
  regarding: { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'node-uid' },
  type: 'Warning',
  reason: 'StepFailed',
  message,
})

let sample: Sample
let transport: KubeTransport
let sent: SentRequest[]
let abort: AbortController

beforeEach(() => {
  sample = sampleServer()
  const client = recordClient(sample.connect())
  transport = client.transport
  sent = client.sent
  abort = new AbortController()
})
afterEach(() => abort.abort())

const startRecorder = (timing: Partial<EventTiming> = {}): EventRecorder =>
  startEventRecorder(transport, {
    clock: sample.clock,
    random: createSeededRandom(1),
    component: 'skyhookd',
    host: 'n',
    signal: abort.signal,
    timing: { countDelayMs: 20, perSecond: 1000, ...timing },
  })
const requestSummaries = (): string[] =>
  sent.map(({ method, body }) => `${method} ${JSON.stringify((body as { count?: number }).count)}`)
const nameOf = ({ body }: SentRequest): string => (body as { metadata: { name: string } }).metadata.name

test('an Event about a cluster-scoped object is in `default` and names reason, message and source', async () => {
  startRecorder().record(eventOf('exit 1'))
  await sample.clock.advance(5)
  expect(requestSummaries()).toEqual(['POST 1'])
  expect(sent[0]?.path).toBe(eventsPath)
  expect(sent[0]?.body).toMatchObject({
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
  await sample.clock.advance(15)
  expect(requestSummaries()).toEqual(['POST 50', 'POST 1'])
  events.record(eventOf('exit 1'))
  events.record(eventOf('exit 1'))
  await sample.clock.advance(19)
  expect(requestSummaries()).toEqual(['POST 50', 'POST 1'])
  await sample.clock.advance(6)
  expect(requestSummaries()).toEqual(['POST 50', 'POST 1', 'PATCH 52'])
})

test('a repetition makes a new Event after the window, or when the server has forgotten the first', async () => {
  const events = startRecorder({ windowMs: 40 })
  events.record(eventOf('exit 1'))
  await sample.clock.advance(5)
  events.record(eventOf('exit 1'))
  for (const request of sent) await sample.admin.json('DELETE', `${eventsPath}/${nameOf(request)}`)
  await sample.clock.advance(25)
  expect(requestSummaries()).toEqual(['POST 1', 'PATCH 2', 'POST 2'])
  await sample.clock.advance(50)
  events.record(eventOf('exit 1'))
  await sample.clock.advance(5)
  expect(requestSummaries()).toEqual(['POST 1', 'PATCH 2', 'POST 2', 'POST 1'])
})

test('a lost answer does not make two Events', async () => {
  sample.server.faults.rules = [{ name: 'lost', fault: { kind: 'lose-answer' }, times: 1 }]
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await sample.clock.advance(10_000)
  expect(requestSummaries()).toEqual(['POST 1', 'POST 1'])
  expect(new Set(sent.map(nameOf)).size).toBe(1)
  expect(sample.server.objects('events')).toHaveLength(1)
  events.record(eventOf('exit 1'))
  await sample.clock.advance(25)
  expect(requestSummaries()).toEqual(['POST 1', 'POST 1', 'PATCH 2'])
})

test('the queue of a slow server drops the oldest Events that do not fit', async () => {
  sample.server.faults.rules = [{ name: 'slow', fault: { kind: 'slow', byMs: 50 }, times: 1 }]
  const events = startRecorder({ maxQueueLength: 3 })
  for (let i = 0; i < 10; i++) events.record(eventOf(`exit ${i}`))
  await sample.clock.advance(60)
  expect(sent.map(({ body }) => (body as { message: string }).message)).toEqual([
    'exit 0',
    'exit 7',
    'exit 8',
    'exit 9',
  ])
})

test('a refused Event is dropped without trying again, and the next one of its kind is new', async () => {
  sample.server.faults.rules = [{ name: 'refused', fault: { kind: 'refuse', code: 403 }, times: 1 }]
  const events = startRecorder()
  events.record(eventOf('exit 1'))
  await sample.clock.advance(60_000)
  expect(requestSummaries()).toEqual(['POST 1'])
  events.record(eventOf('exit 1'))
  await sample.clock.advance(5)
  expect(requestSummaries()).toEqual(['POST 1', 'POST 1'])
})

test('the rate of Events is bounded', async () => {
  const events = startRecorder({ perSecond: 50, burst: 2 })
  const startMs = sample.clock.wallMs()
  for (let i = 0; i < 6; i++) events.record(eventOf(`exit ${i}`))
  await sample.clock.advance(1_000)
  expect(sample.server.audit.map(({ atMs }) => atMs - startMs)).toEqual([0, 0, 20, 40, 60, 80])
})

test('an over-long message is cut', async () => {
  startRecorder().record(eventOf('x'.repeat(5000)))
  await sample.clock.advance(5)
  expect(sent.map(({ body }) => (body as { message: string }).message)).toEqual([`${'x'.repeat(1023)}…`])
})
