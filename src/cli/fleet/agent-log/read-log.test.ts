import { PassThrough } from 'node:stream'
import { beforeEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../../../test/kit/virtual-clock.ts'
import { ApiError, NoResponseError } from '../../../kube/errors.ts'
import type { KubeRequestOptions, KubeTransport } from '../../../kube/transport.ts'
import { agentPodOf } from '../fleet-view/project.ts'
import { followLog, type FollowedLine, isNoPrevious, readLog, type StampedLine } from './read-log.ts'

type Opened = { readonly path: string; readonly query: KubeRequestOptions['query']; readonly stream: PassThrough }

type PodObject = Parameters<typeof agentPodOf>[0]

let clock: VirtualClock
let pods: PodObject[]
let opened: Opened[]
let failure: Error | undefined
let controller: AbortController
let received: FollowedLine[]
let ended: Promise<unknown>

const pod = (name: string, more: object = {}): PodObject => ({
  metadata: { name, uid: name, resourceVersion: '1', ...more },
  spec: { nodeName: 'n1' },
})
const transport: KubeTransport = {
  json: async <T>() => ({ metadata: { resourceVersion: '1' }, items: pods }) as T,
  async stream(path, { query, signal } = {}) {
    if (failure) throw failure
    const stream = new PassThrough()
    signal?.addEventListener('abort', () => stream.destroy(signal.reason as Error))
    opened.push({ path, query, stream })
    return stream
  },
  close: () => undefined,
}
const ports = () => ({ transport, namespace: 'hosts', clock, signal: controller.signal })
const stamp = (second: number): string => `2026-03-01T12:00:0${second}.000000000Z`
const texts = (): string[] => received.map((line) => ('note' in line ? `(${line.note})` : line.text))
const current = (): PassThrough => opened.at(-1)?.stream as PassThrough

async function follow(): Promise<void> {
  for await (const line of followLog(ports(), 'n1')) received.push(line)
}

beforeEach(async () => {
  clock = createVirtualClock()
  pods = [pod('a')]
  opened = []
  failure = undefined
  controller = new AbortController()
  received = []
})
/** Starts following, with the first connection open. */
async function start(): Promise<void> {
  ended = follow().catch((error: unknown) => error)
  await clock.advance(1)
}
async function write(...lines: string[]): Promise<void> {
  current().write(lines.map((line) => `${line}\n`).join(''))
  await clock.advance(1)
}

test('a log is read with the time of each line', async () => {
  const read = async (): Promise<StampedLine[]> => {
    const lines: StampedLine[] = []
    for await (const line of readLog(ports(), agentPodOf(pod('a')), { isPrevious: true })) lines.push(line)
    return lines
  }
  const reading = read()
  await clock.advance(1)
  current().end(`${stamp(1)} one\n${stamp(2)} cut off`)
  expect(await reading).toEqual([
    { stamp: stamp(1), text: 'one' },
    { stamp: stamp(2), text: 'cut off' },
  ])
  expect(opened[0]).toMatchObject({
    path: '/api/v1/namespaces/hosts/pods/a/log',
    query: { container: 'agent', timestamps: true, previous: true },
  })
})

test('a line that is written arrives at once', async () => {
  await start()
  await write(`${stamp(1)} one`)
  expect(texts()).toEqual(['one'])
  await write(`${stamp(2)} two`)
  expect(texts()).toEqual(['one', 'two'])
})

test('a connection that breaks is opened again, and each line comes once', async () => {
  await start()
  await write(`${stamp(1)} one`, `${stamp(2)} two`)
  current().destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  await clock.advance(600)
  expect(opened[1]?.query).toMatchObject({ sinceTime: stamp(2) })
  await write(`${stamp(1)} one`, `${stamp(2)} two`, `${stamp(3)} three`)
  expect(texts()).toEqual(['one', 'two', 'three'])
})

test('the agent that replaces one is followed from its first line', async () => {
  await start()
  await write(`${stamp(5)} one`)
  pods = [pod('a', { deletionTimestamp: stamp(5) }), pod('b', { creationTimestamp: stamp(6) })]
  current().end()
  await clock.advance(600)
  await write(`${stamp(4)} from a clock that is behind`)
  expect(opened.map(({ path, query }) => [path, query?.['sinceTime']])).toEqual([
    ['/api/v1/namespaces/hosts/pods/a/log', undefined],
    ['/api/v1/namespaces/hosts/pods/b/log', undefined],
  ])
  expect(texts()).toEqual(['one', 'from a clock that is behind'])
})

test('a missing agent is waited for, and that is reported once', async () => {
  pods = []
  await start()
  await clock.advance(10_000)
  expect(texts()).toEqual(['(no agent answers there at present, waiting)'])
  pods = [pod('b')]
  await clock.advance(1_000)
  await write(`${stamp(1)} one`)
  expect(texts().at(-1)).toBe('one')
})

test('an API server that does not answer is waited for', async () => {
  failure = new NoResponseError('refused', { mayHaveBeenSent: false })
  await start()
  await clock.advance(1_000)
  failure = undefined
  await clock.advance(1_000)
  await write(`${stamp(1)} one`)
  expect(texts()).toEqual(['one'])
})

test('a connection that is silent for two minutes is opened again', async () => {
  await start()
  await write(`${stamp(1)} one`)
  await clock.advance(121_000)
  expect(opened).toHaveLength(2)
  await clock.advance(1_200_000)
  expect(texts()).toEqual(['one'])
})

test('a caller who may not read logs is refused immediately', async () => {
  failure = new ApiError({ status: 403, reason: 'Forbidden', message: 'pods/log is forbidden' })
  await start()
  expect(await ended).toBe(failure)
})

test('ctrl-C ends following with the reason of the signal', async () => {
  await start()
  const reason = new Error('interrupted')
  controller.abort(reason)
  expect(await ended).toBe(reason)
  expect([current().destroyed, clock.pendingTimers]).toEqual([true, 0])
})

test.each([
  [400, 'previous terminated container "agent" in pod "a" not found', true],
  [400, 'container "agent" in pod "a" is waiting to start', false],
  [404, 'pods "previous" not found', false],
])('an answer %i with "%s" means that there was no container before: %j', (status, message, expected) => {
  expect(isNoPrevious(new ApiError({ status, reason: 'x', message }))).toBe(expected)
})
