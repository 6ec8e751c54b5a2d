/** Each wait of the daemon, with a wall clock that jumps in the middle of it. */
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/fake-api-server.ts'
import { createVirtualClock } from '../../test/support/virtual-clock.ts'
import { startEventRecorder } from '../kube/events.ts'
import { toWallMs } from '../schemas/clock.ts'
import type { TimedReason } from '../stages/model/plan.ts'
import { createEvictor } from './executors/evictions.ts'
import { createFailureBook } from './failures/book.ts'
import { runLoop } from './loop.ts'
import { createStartUp } from './start-up.ts'
import { followNode } from './state/node.ts'
import { createWakeup } from './state/wakeup.ts'
import { createLog } from './telemetry/log.ts'
import { createEventReporter } from './telemetry/reporter.ts'

const random = { number: () => 0, hex: () => 'ab' }
const log = createLog('silent', {})
const nodesPath = '/api/v1/nodes'
const eventsPath = '/api/v1/namespaces/default/events'
const podsPath = '/api/v1/namespaces/default/pods'

const closers: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function startServer(): Promise<{ readonly api: FakeApiServer; readonly signal: AbortSignal }> {
  const api = await startFakeApiServer([nodesPath, eventsPath, podsPath])
  const stopping = new AbortController()
  closers.push(
    () => api.stop(),
    () => stopping.abort(),
  )
  return { api, signal: stopping.signal }
}

describe.each([
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const)('%s by an hour', (_, jumpMs) => {
  const createClock = () => {
    const clock = createVirtualClock()
    return Object.assign(clock, { jump: () => clock.setWallMs(clock.wallMs() + jumpMs) })
  }

  test('a jump of the wall clock does not change when the loop looks again, nor when it retries', async () => {
    const clock = createClock()
    const stopping = new AbortController()
    closers.push(() => stopping.abort())
    const failures = createFailureBook({ clock, random })
    const looksAtMs: number[] = []
    void runLoop({
      clock,
      wakeup: createWakeup(),
      journal: { current: () => ({}) as never, error: () => undefined, write: async () => true },
      takeSnapshot() {
        looksAtMs.push(clock.monotonicMs())
        if (looksAtMs.length < 3) throw new Error('broken') // 1 s, then 2 s
        return undefined // a minute
      },
      execute: async () => undefined,
      onDecided: () => undefined,
      onActionFailed: () => undefined,
      onDecisionFailed: () => undefined,
      failures,
      retain: () => undefined,
      signal: stopping.signal,
    })
    await clock.advance(500)
    clock.jump()
    await clock.advance(30_000)
    clock.jump()
    await clock.advance(60_000)
    expect(looksAtMs).toEqual([0, 1_000, 3_000, 63_000])
  })

  test('a jump of the wall clock does not change the backoff of a failure', async () => {
    const clock = createClock()
    const book = createFailureBook({ clock, random })
    book.record('key', { operation: 'do it' }, new Error('no'))
    clock.jump()
    book.record('key', { operation: 'do it' }, new Error('no'))
    expect(book.notBeforeMs('key') - clock.steadyMs()).toBe(2_000)
  })

  test('a jump of the wall clock does not change how often a start-up is tried, nor when it is reported', async () => {
    const clock = createClock()
    const attemptsAtMs: number[] = []
    const reportedAtMs: number[] = []
    const failures = createFailureBook({ clock, random })
    const startUp = createStartUp({
      clock,
      log,
      failures,
      onLasting: () => void reportedAtMs.push(clock.monotonicMs()),
      signal: new AbortController().signal,
    })
    const done = startUp.untilDone('try', async () => {
      attemptsAtMs.push(clock.monotonicMs())
      if (attemptsAtMs.length < 4) throw new Error('not yet')
    })
    await clock.advance(500)
    clock.jump()
    await clock.advance(10_000)
    await done
    expect([attemptsAtMs, reportedAtMs[0]]).toEqual([[0, 1_000, 3_000, 7_000], 3_000])
  })

  test('a jump of the wall clock does not change when a refused eviction is retried', async () => {
    const clock = createClock()
    const { api, signal } = await startServer()
    const transport = api.connect()
    closers.push(() => transport.close())
    const { metadata } = api.put(podsPath, { metadata: { name: 'p', namespace: 'default' } })
    const pod = { metadata: { ...metadata, namespace: 'default' }, spec: {}, status: {} } as never
    const onDeleted = (): void => undefined
    const evictor = createEvictor({
      transport,
      clock,
      random: { ...random, number: () => 0.5 },
      log,
      signal,
      mayDelete: false,
      onDeleted,
      onEnded: onDeleted,
    })
    api.fault(({ path }) => path.endsWith('/eviction'), { kind: 'status', status: 429, message: 'budget' }, 2)
    await evictor.evict(pod, false)
    await clock.advance(2_000)
    clock.jump()
    await evictor.evict(pod, false)
    const [eviction] = evictor.current().values()
    expect(eviction).toMatchObject({ state: 'blocked', retryAtMs: clock.steadyMs() + 2_000 })
  })

  test('a jump of the wall clock does not change how long an executor waits for its Node', async () => {
    const clock = createClock()
    const { api, signal } = await startServer()
    const transport = api.connect()
    closers.push(() => transport.close())
    api.put(nodesPath, { metadata: { name: 'n' } })
    const noted = { wake: () => undefined, onFact: () => undefined }
    const source = followNode(transport, 'n', { clock, random, signal, ...noted })
    await source.synced
    let endedAtMs: number | undefined
    const { resourceVersion = '' } = source.current()?.metadata ?? {}
    void source.untilChanged(resourceVersion, 5_000).then(() => (endedAtMs = clock.monotonicMs()))
    await clock.advance(1_000)
    clock.jump()
    api.put(nodesPath, { metadata: { name: 'other' } }) // wakes nobody
    for (let passedMs = 0; passedMs < 5_000; passedMs += 500) await clock.advance(500)
    expect(endedAtMs).toBe(5_000)
  })

  test('a jump of the wall clock does not change when a reason is reported, nor its age', async () => {
    const clock = createClock()
    const reported: string[] = []
    const reporter = createEventReporter({
      clock,
      log,
      recorder: { record: ({ reason }) => void reported.push(reason) },
      node: () => ({ metadata: { name: 'n', uid: 'u', resourceVersion: '1' } }),
      findCordoner: async () => undefined,
    })
    const reason: TimedReason = { reason: 'HostUnusable', message: 'm', sinceMs: clock.steadyMs() }
    const reasons = new Map([['s', reason]])
    reporter.report([], reasons)
    clock.jump()
    await clock.advance(1_900)
    reporter.report([], reasons)
    expect(reported).toEqual([])
    await clock.advance(100)
    reporter.report([], reasons)
    expect(reported).toEqual(['HostUnusable'])
    expect([...reporter.reasonAges()]).toEqual([['HostUnusable', 2]])
  })

  test('a jump of the wall clock does not make a new Event of a repetition, and its times are those of the wall clock', async () => {
    const clock = createClock()
    const { api, signal } = await startServer()
    const transport = api.connect({ clock })
    closers.push(() => transport.close())
    const recorder = startEventRecorder(transport, { clock, random, component: 'c', host: 'n', signal })
    const regarding = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }
    const record = () => recorder.record({ regarding, type: 'Warning', reason: 'R', message: 'm' })
    record()
    for (let turn = 0; turn < 20; turn++) await clock.advance(10)
    clock.jump()
    record()
    for (let turn = 0; turn < 20; turn++) await clock.advance(5_000)
    expect(api.requests.map(({ method }) => method)).toEqual(['POST', 'PATCH'])
    const [, { body } = {}] = api.requests
    const { lastTimestamp } = body as { readonly lastTimestamp: string }
    expect(Math.abs(Date.parse(lastTimestamp) - clock.wallMs())).toBeLessThan(120_000)
  })

  test('a jump of the wall clock moves the published time of a moment with it', () => {
    const clock = createClock()
    const momentMs = clock.steadyMs()
    clock.jump()
    expect([clock.steadyMs() - momentMs, toWallMs(clock, momentMs) - momentMs]).toEqual([0, jumpMs])
  })
})
