import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createStream } from '../../../test/kit/api-server/stream.ts'
import type { VirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Budget } from '../../schemas/budget.ts'
import { followSkyhooks, type SkyhookSource } from './skyhooks.ts'

let api: Sample
let transport: KubeTransport
let clock: VirtualClock
let stopping: AbortController
let delayMs: number
let failed: string[]
let ended: string[]
let wakes: number
let defaultBudget: Budget

beforeEach(() => {
  api = sampleServer()
  transport = api.connect()
  clock = api.clock
  stopping = new AbortController()
  delayMs = 0
  failed = []
  ended = []
  wakes = 0
  defaultBudget = {}
})
afterEach(() => stopping.abort())

const follow = (): SkyhookSource =>
  followSkyhooks(transport, {
    defaultBudget,
    policyOf: () => undefined,
    clock,
    random: { number: () => 0, hex: () => '' },
    readDelayMs: () => delayMs,
    wake: () => void wakes++,
    onFact: () => undefined,
    onReadFailed: (name) => void failed.push(name),
    onReadEnded: (name) => void ended.push(name),
    signal: stopping.signal,
  })
const putSkyhook = (name: string, priority: number, extra: object = {}): void =>
  void api.put(skyhooksPath, { metadata: { name, ...extra }, spec: { priority }, status: { large: 'x' } })
const putStatus = (name: string, large: string): void => {
  const { metadata, ...rest } = api.get(skyhooksPath, name) ?? expect.unreachable()
  api.put(skyhooksPath, { ...rest, metadata, status: { large } })
}
const reads = (): number => api.sent.filter(({ path }) => path.startsWith(`${skyhooksPath}/`)).length
function prioritiesOf(source: SkyhookSource): Record<string, unknown> | string {
  const current = source.current()
  if (!current.known) return current.why
  return Object.fromEntries(
    current.value.map(({ metadata, spec, stale }) => [metadata.name, stale ? 'stale' : spec.priority]),
  )
}
const until = async (check: () => void): Promise<void> => await api.eventually(check)

test('nothing is known until every Skyhook was read', async () => {
  putSkyhook('a', 10)
  putSkyhook('b', 20)
  api.fault(({ path }) => path.endsWith('/b'), { kind: 'refuse', code: 500 })
  const source = follow()
  expect(prioritiesOf(source)).toContain('not')
  await until(() => expect(failed).toContain('b'))
  expect(prioritiesOf(source)).toContain('Skyhook b')
  await clock.advance(800)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10, b: 20 }))
})

test('a Skyhook that names no budget is seen with that of the defaults, and as it is stored', async () => {
  defaultBudget = { percent: 5 }
  api.put(skyhooksPath, { metadata: { name: 'a' }, spec: { interruptionBudget: {} } })
  api.put(skyhooksPath, { metadata: { name: 'b' }, spec: { interruptionBudget: { count: 3 } } })
  const source = follow()
  await until(() => expect(source.current().known).toBe(true))
  expect(source.current()).toMatchObject({
    value: [
      { budget: { percent: 5 }, spec: { interruptionBudget: {} } },
      { budget: { count: 3 }, spec: { interruptionBudget: { count: 3 } } },
    ],
  })
})

test('a Skyhook is read in full once per generation', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  putSkyhook('a', 10, { annotations: { note: 'x' } })
  await until(() => expect(source.current()).toMatchObject({ value: [{ metadata: { annotations: { note: 'x' } } }] }))
  expect(reads()).toBe(1)
  putSkyhook('a', 30)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 30 }))
  expect([reads(), wakes > 3]).toEqual([2, true])
})

test('the status of a Skyhook is not kept', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  expect(JSON.stringify(source.current())).not.toContain('large')
})

test('a status that is written causes no decision', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  const wakesBefore = wakes
  putStatus('a', 'y')
  putSkyhook('b', 20)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10, b: 20 }))
  // b became unknown, and was read
  expect(wakes - wakesBefore).toBe(2)
})

test('a Skyhook whose newer generation is not read yet is stale', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  delayMs = 5_000
  putSkyhook('a', 30)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 'stale' }))
  await clock.advance(5_000)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 30 }))
})

test('what is known is in doubt while the watch is broken, and the agent is woken when it is certain again', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  expect(source.isInDoubt()).toBe(false)
  api.fault(({ path }) => path === skyhooksPath, { kind: 'refuse', code: 503 })
  const wakesBefore = wakes
  api.breakConnections()
  await until(() => expect(source.isInDoubt()).toBe(true))
  expect(wakes).toBe(wakesBefore + 1)
  await clock.advance(5_000)
  await until(() => expect(source.isInDoubt()).toBe(false))
  expect([prioritiesOf(source), wakes]).toEqual([{ a: 10 }, wakesBefore + 2])
})

test('a Skyhook that was created again under its name is read again', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  api.remove(skyhooksPath, 'a')
  putSkyhook('a', 40)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 40 }))
})

test('a deleted Skyhook is gone', async () => {
  putSkyhook('a', 10)
  const source = follow()
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  api.remove(skyhooksPath, 'a')
  await until(() => expect(prioritiesOf(source)).toEqual({}))
})

test('a read that fails is repeated after a pause and asks for no older version', async () => {
  putSkyhook('a', 10)
  api.fault(({ path }) => path.endsWith('/a'), { kind: 'refuse', code: 500 })
  const source = follow()
  await until(() => expect(failed).toEqual(['a']))
  expect(reads()).toBe(1)
  await clock.advance(800)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 10 }))
  const { metadata } = api.get(skyhooksPath, 'a') ?? { metadata: { resourceVersion: 'none' } }
  expect(api.sent.at(-1)?.query['resourceVersion']).toBe(metadata.resourceVersion)
})

test('a Skyhook that the watch shows and the API server does not have is read with backoff, and said', async () => {
  putSkyhook('a', 5)
  api.fault(({ path }) => path.startsWith(`${skyhooksPath}/`), { kind: 'refuse', code: 404 }, 100)
  const source = follow()
  await source.synced
  for (let passedMs = 0; passedMs < 5_000; passedMs += 100) await clock.advance(100)
  expect(reads()).toBeLessThan(6)
  expect(failed).toContain('a')
})

test('a Skyhook that the API server has with another uid than a silent watch shows is read with backoff', async () => {
  putSkyhook('a', 5)
  api.fault(({ verb }) => verb === 'watch', { kind: 'slow-watch', byMs: 600_000 })
  delayMs = 1_000
  const source = follow()
  await source.synced
  api.remove(skyhooksPath, 'a')
  putSkyhook('a', 6)
  await clock.advance(1_000)
  delayMs = 0
  await until(() => expect(reads()).toBeGreaterThan(0))
  for (let passedMs = 0; passedMs < 5_000; passedMs += 100) await clock.advance(100)
  expect(reads()).toBeLessThan(6)
  for (let passedMs = 0; passedMs < 5_000; passedMs += 100) await clock.advance(100)
  await until(() => expect(prioritiesOf(source)).toEqual({ a: 6 })) // after a LIST
})

describe('after a restore of etcd', () => {
  /** Longer than the pauses of a reflector that failed and lists again. */
  const letWatchesRecover = async (): Promise<void> => await clock.advance(10_000)

  /**
   * Restores each Skyhook to its state before `edit`, and ends the watches. The revision is raised, as Kubernetes
   * requires.
   */
  async function restoredAfter(edit: () => void | Promise<void>): Promise<void> {
    const backup = api.server.backUp()
    await edit()
    api.server.restore(backup, api.server.revision())
  }

  test('a Skyhook of an older generation is read again', async () => {
    putSkyhook('a', 30)
    const source = follow()
    await restoredAfter(async () => {
      putSkyhook('a', 40)
      await until(() => expect(prioritiesOf(source)).toEqual({ a: 40 }))
    })
    await letWatchesRecover()
    expect(prioritiesOf(source)).toEqual({ a: 30 })
  })

  test('a Skyhook that reaches the same generation with another spec is read again', async () => {
    putSkyhook('a', 30)
    const source = follow()
    await restoredAfter(async () => {
      putSkyhook('a', 40)
      await until(() => expect(prioritiesOf(source)).toEqual({ a: 40 }))
    })
    putSkyhook('a', 44)
    await letWatchesRecover()
    expect(prioritiesOf(source)).toEqual({ a: 44 })
  })

  test('a Skyhook that the watch shows in an older generation is read again, whatever the watch did', async () => {
    putSkyhook('a', 30)
    const older = api.get(skyhooksPath, 'a')
    const watch = createStream() // the Skyhook survives the restore
    transport = { ...transport, stream: () => Promise.resolve(watch) }
    let source: SkyhookSource | undefined
    await restoredAfter(async () => {
      putSkyhook('a', 40)
      source = follow()
      await until(() => expect(source && prioritiesOf(source)).toEqual({ a: 40 }))
    })
    watch.write(Buffer.from(`${JSON.stringify({ type: 'MODIFIED', object: older })}\n`))
    await until(() => expect(source && prioritiesOf(source)).toEqual({ a: 30 }))
  })

  test('an answer that was asked for before the LIST does not count', async () => {
    putSkyhook('a', 30)
    const source = follow()
    await until(() => expect(prioritiesOf(source)).toEqual({ a: 30 }))
    await restoredAfter(async () => {
      api.fault(({ path }) => path.endsWith('/a'), { kind: 'slow', byMs: 15_000 })
      putSkyhook('a', 40)
      await until(() => expect(reads()).toBe(2))
    })
    putSkyhook('a', 44)
    await letWatchesRecover()
    expect(reads()).toBe(2)
    await until(() => expect(prioritiesOf(source)).toEqual({ a: 44 }))
    expect(reads()).toBe(3)
  })

  test('a LIST that shows the Skyhooks as they were read causes no read', async () => {
    putSkyhook('a', 40)
    const source = follow()
    await until(() => expect(prioritiesOf(source)).toEqual({ a: 40 }))
    putStatus('a', 'y')
    await letWatchesRecover()
    api.breakConnections()
    api.server.compact()
    await letWatchesRecover()
    const lists = api.sent.filter(({ path, isWatch }) => path === skyhooksPath && !isWatch)
    expect([reads(), lists.length > 1, prioritiesOf(source)]).toEqual([1, true, { a: 40 }])
  })
})

test('an agent that is stopped while a Skyhook cannot be read no longer requests it, and ends', async () => {
  putSkyhook('a', 5)
  api.fault(({ path }) => path.startsWith(`${skyhooksPath}/`), { kind: 'refuse', code: 500 }, 100)
  const source = follow()
  await source.synced
  await until(() => expect(failed).toContain('a'))
  const [readsBefore, endedBefore] = [reads(), ended.length]
  stopping.abort()
  await clock.advance(60_000)
  expect([reads(), ended.length - endedBefore, clock.pendingTimers]).toEqual([readsBefore, 0, 0])
})
