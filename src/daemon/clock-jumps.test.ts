/** Each wait of the daemon, with a wall clock that jumps during the wait. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createNode, createPod, podsPath, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { startEventRecorder } from '../kube/events.ts'
import { toWallMs } from '../schemas/clock.ts'
import type { TimedReason } from '../stages/model/plan.ts'
import type { Pod } from '../stages/model/pods.ts'
import { createStartUp } from './agent.ts'
import { createEvictor } from './executors/evictions.ts'
import { createFailureBook } from './failures/book.ts'
import { createWakeup, runLoop } from './loop.ts'
import { followNode } from './state/node.ts'
import { createLog } from './telemetry/log.ts'
import { createEventReporter } from './telemetry/reporter.ts'

const random = { number: () => 0, hex: () => 'ab' }
const log = createLog('silent', {})

let stopping: AbortController
beforeEach(() => {
  stopping = new AbortController()
})
afterEach(() => stopping.abort())

describe.each([
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const)('%s by an hour', (_, jumpMs) => {
  const startSample = () => {
    const sample = sampleServer()
    const { clock } = sample
    return { ...sample, jump: () => clock.setWallMs(clock.wallMs() + jumpMs) }
  }

  test('a jump of the wall clock does not change when the loop looks again, nor when it retries', async () => {
    const { clock, jump } = startSample()
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
      execute: async () => ({ outcome: 'done' }),
      onDecided: () => undefined,
      onActionFailed: () => undefined,
      onActionRejected: () => undefined,
      onDecisionFailed: () => undefined,
      failures,
      retain: () => undefined,
      signal: stopping.signal,
    })
    await clock.advance(500)
    jump()
    await clock.advance(30_000)
    jump()
    await clock.advance(60_000)
    expect(looksAtMs).toEqual([0, 1_000, 3_000, 63_000])
  })

  test('a jump of the wall clock does not change the backoff of a failure', async () => {
    const { clock, jump } = startSample()
    const book = createFailureBook({ clock, random })
    book.record('key', { operation: 'do it' }, new Error('no'))
    jump()
    book.record('key', { operation: 'do it' }, new Error('no'))
    expect(book.notBeforeMs('key') - clock.steadyMs()).toBe(2_000)
  })

  test('a jump of the wall clock does not change how often a start-up is tried, nor when it is reported', async () => {
    const { clock, jump } = startSample()
    const attemptsAtMs: number[] = []
    const reportedAtMs: number[] = []
    const failures = createFailureBook({ clock, random })
    const startUp = createStartUp({
      clock,
      log,
      failures,
      onLasting: () => void reportedAtMs.push(clock.monotonicMs()),
      signal: stopping.signal,
    })
    const done = startUp.untilDone('try', async () => {
      attemptsAtMs.push(clock.monotonicMs())
      if (attemptsAtMs.length < 4) throw new Error('not yet')
    })
    await clock.advance(500)
    jump()
    await clock.advance(10_000)
    await done
    expect([attemptsAtMs, reportedAtMs[0]]).toEqual([[0, 1_000, 3_000, 7_000], 3_000])
  })

  test('a jump of the wall clock does not change when a refused eviction is retried', async () => {
    const { clock, jump, server, admin, connect } = startSample()
    await createPod(admin, 'p')
    const pod = await admin.json<Pod>('GET', `${podsPath}/p`)
    const onDeleted = (): void => undefined
    const evictor = createEvictor({
      transport: connect(),
      clock,
      random: { ...random, number: () => 0 },
      log,
      signal: stopping.signal,
      mayDelete: false,
      onDeleted,
      onEnded: onDeleted,
    })
    server.faults.rules = [{ name: 'budget', fault: { kind: 'refuse', code: 429 } }]
    await evictor.evict(pod, false)
    await clock.advance(2_000)
    jump()
    await evictor.evict(pod, false)
    const [eviction] = evictor.current().values()
    expect(eviction).toMatchObject({ state: 'blocked', retryAtMs: clock.steadyMs() + 2_000 })
  })

  test('a jump of the wall clock does not change how long an executor waits for its Node', async () => {
    const { clock, jump, admin, connect } = startSample()
    await createNode(admin, 'n')
    const noted = { wake: () => undefined, onFact: () => undefined }
    const source = followNode(connect(), 'n', { clock, random, signal: stopping.signal, ...noted })
    await source.synced
    let endedAtMs: number | undefined
    const { resourceVersion = '' } = source.current()?.metadata ?? {}
    void source.untilChanged(resourceVersion, 5_000).then(() => (endedAtMs = clock.monotonicMs()))
    await clock.advance(1_000)
    jump()
    await createNode(admin, 'other') // does not wake the loop
    await clock.advance(5_000)
    expect(endedAtMs).toBe(5_000)
  })

  test('a jump of the wall clock does not change when a reason is reported, nor its age', async () => {
    const { clock, jump } = startSample()
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
    jump()
    await clock.advance(1_900)
    reporter.report([], reasons)
    expect(reported).toEqual([])
    await clock.advance(100)
    reporter.report([], reasons)
    expect(reported).toEqual(['HostUnusable'])
    expect([...reporter.reasonAges()]).toEqual([['HostUnusable', 2]])
  })

  test('a jump of the wall clock does not make a new Event of a repetition, and its times are those of the wall clock', async () => {
    const { clock, jump, server, connect } = startSample()
    const recorder = startEventRecorder(connect(), {
      clock,
      random,
      component: 'c',
      host: 'n',
      signal: stopping.signal,
    })
    const regarding = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }
    const record = () => recorder.record({ regarding, type: 'Warning', reason: 'R', message: 'm' })
    record()
    await clock.advance(200)
    jump()
    record()
    await clock.advance(100_000)
    expect(server.audit.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['create events', 'patch events'])
    const [{ lastTimestamp } = {}] = server.objects('events') as readonly { readonly lastTimestamp?: string }[]
    expect(Math.abs(Date.parse(lastTimestamp ?? '') - clock.wallMs())).toBeLessThan(120_000)
  })

  test('a jump of the wall clock moves the published time of a moment with it', () => {
    const { clock, jump } = startSample()
    const momentMs = clock.steadyMs()
    jump()
    expect([clock.steadyMs() - momentMs, toWallMs(clock, momentMs) - momentMs]).toEqual([0, jumpMs])
  })
})
