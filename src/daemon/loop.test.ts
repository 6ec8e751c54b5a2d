import { afterEach, beforeEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../test/kit/virtual-clock.ts'
import { emptyJournal, type Journal } from '../schemas/journal.ts'
import type { Action } from '../stages/model/plan.ts'
import { noOtherOperator, known, takeSnapshot, unknown, type Observations } from '../stages/model/snapshot.ts'
import { createFailureBook, type FailureBook } from './failures/book.ts'
import { outcomeOf } from './failures/reason-of.ts'
import { createWakeup, type LoopPorts, runLoop, type Wakeup } from './loop.ts'
import { createJournalStore, type JournalStore } from './state/journal.ts'
import { createLog } from './telemetry/log.ts'

const sameTimes = { store: (journal: Journal) => journal, carry: (journal: Journal) => journal }

let clock: VirtualClock
let wakeup: Wakeup
let stopping: AbortController
let isDiskFull: boolean
let written: Journal[]
let logged: string[]
let failures: FailureBook
let stored: Journal
let journal: JournalStore

beforeEach(() => {
  clock = createVirtualClock()
  wakeup = createWakeup()
  stopping = new AbortController()
  isDiskFull = false
  written = []
  logged = []
  failures = createFailureBook({ clock, random: { number: () => 0, hex: () => '' } })
  stored = emptyJournal('')
  journal = createJournalStore(
    {
      read: async () => ({ state: 'read', document: stored }),
      write: async (document) => {
        if (isDiskFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
        written.push(document)
      },
    },
    { ...createLog('silent', {}), error: (_, message) => void logged.push(message) },
    sameTimes,
  )
})
afterEach(() => stopping.abort())

const settings = {
  runtimeRequiredTaint: { key: 'k', effect: 'NoSchedule' },
  skipNamespaces: [],
  reapplyOnReboot: false,
  ignoreNodeWright: false,
}

function observe(change: Partial<Observations> = {}): Observations {
  return {
    wallOffsetMs: 0,
    bootId: 'boot-1',
    node: { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } },
    skyhooks: known([]),
    journal: journal.current(),
    journalError: journal.error(),
    attempts: new Map(),
    preparations: new Map(),
    slots: known([]),
    slotDenials: new Map(),
    distantSkyhooks: new Set(),
    pods: unknown('not followed'),
    nodeCount: undefined,
    evictedOwners: new Map(),
    hostFolders: new Set(),
    otherOperator: noOtherOperator,
    rolledOutConfigs: new Map(),
    evictions: new Map(),
    interrupts: new Map(),
    statuses: known(new Map()),
    requestedStatuses: new Map(),
    cleanUps: new Map(),
    failures: new Map(),
    host: { state: 'usable' },
    ...change,
  }
}

type Changes = Partial<Omit<LoopPorts, 'execute'>> & { execute?: (action: Action) => Promise<void> }

function startLoop(
  { execute = async () => undefined, ...change }: Changes = {},
  observations: Partial<Observations> = {},
): Promise<void> {
  return runLoop({
    clock,
    wakeup,
    journal,
    takeSnapshot: (nowMs) => takeSnapshot(observe(observations), nowMs, settings),
    execute: async (action) => await outcomeOf(execute(action)),
    onDecided: () => undefined,
    onActionFailed: () => undefined,
    onActionRejected: () => undefined,
    onDecisionFailed: () => undefined,
    failures,
    retain: () => undefined,
    signal: stopping.signal,
    ...change,
  })
}

/** A journal whose only step is canceled: the first plan records its end and forgets it. */
async function loadCanceledStep(): Promise<void> {
  const place = { package: 'a', id: 'x', unit: 'x.service', mode: 'apply', index: 0, path: 'run.sh' } as const
  const canceling = [{ ...place, bootId: 'boot-1', startedAtMs: 0 }]
  const record = { uid: 'a-uid', rev: 1, packages: {}, reboots: {}, flags: {}, installedVersions: {}, canceling }
  stored = { ...emptyJournal('u'), skyhooks: { gone: record } }
  await journal.load()
}

const endedStep = new Map([['x', { state: 'ended', end: { outcome: 'exited', code: 0 } } as const]])

test('a record that cannot be written is retried, although no plan names it twice', async () => {
  await loadCanceledStep()
  let attemptCount = 0
  const failed: string[] = []
  void startLoop(
    {
      execute: async ({ do: what }) => {
        if (what === 'forgetStep' && ++attemptCount < 3) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      },
      onActionFailed: ({ key }) => void failed.push(key),
    },
    { attempts: endedStep },
  )
  await clock.advance(0)
  expect(attemptCount).toBe(1)
  await clock.advance(999)
  expect(attemptCount).toBe(1)
  await clock.advance(1)
  expect(attemptCount).toBe(2)
  await clock.advance(5_000)
  expect([attemptCount, failed.length]).toEqual([3, 2])
})

test('an action that is under way is not started again', async () => {
  await loadCanceledStep()
  const started: string[] = []
  const execute = async ({ do: what }: Action): Promise<void> => {
    started.push(what)
    await new Promise(() => undefined)
  }
  void startLoop({ execute }) // the step still runs, so every plan contains its stop
  await clock.advance(0)
  expect(started).toEqual(['stopStep'])
  wakeup.wake()
  await clock.advance(60_000)
  expect(started).toEqual(['stopStep'])
})

test('an action that succeeds and is planned again unchanged is repeated after growing pauses, up to 5 s', async () => {
  await loadCanceledStep()
  const startedAtMs: number[] = []
  const startMs = clock.steadyMs()
  const execute = async ({ do: what }: Action): Promise<void> => {
    if (what === 'stopStep') startedAtMs.push(clock.steadyMs() - startMs) // the step still runs
  }
  void startLoop({ execute })
  for (let passedMs = 0; passedMs < 20_000; passedMs += 50) {
    await clock.advance(50)
    wakeup.wake()
  }
  expect(startedAtMs).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300])
})

test('an action that left the plan meanwhile starts at once when it is planned again', async () => {
  await loadCanceledStep()
  let isEnded = false
  const executed: string[] = []
  void startLoop({
    execute: async ({ do: what }) => void executed.push(what),
    takeSnapshot: (nowMs) => takeSnapshot(observe({ attempts: isEnded ? endedStep : new Map() }), nowMs, settings),
  })
  await clock.advance(0)
  isEnded = true
  wakeup.wake()
  await clock.advance(0)
  isEnded = false
  await loadCanceledStep()
  wakeup.wake()
  await clock.advance(0)
  expect(executed).toEqual(['stopStep', 'forgetStep', 'stopStep'])
})

test('a failure is not forgotten while its action is tried again, also if no plan asks for it meanwhile', async () => {
  await loadCanceledStep()
  let attemptCount = 0
  let isEnded = false
  void startLoop({
    execute: async ({ do: what }) => {
      if (what !== 'stopStep') return
      if (++attemptCount > 1) await new Promise(() => undefined)
      throw new Error('no answer')
    },
    takeSnapshot: (nowMs) => takeSnapshot(observe({ attempts: isEnded ? endedStep : new Map() }), nowMs, settings),
  })
  await clock.advance(2_000)
  expect(attemptCount).toBe(2)
  isEnded = true
  wakeup.wake()
  await clock.advance(0)
  expect([...failures.current().keys()]).toEqual(['stopStep stop/x'])
})

test('a journal that cannot be written holds everything back, says why, and is retried until it can', async () => {
  await loadCanceledStep()
  isDiskFull = true
  const actions: string[] = []
  void startLoop({ execute: async ({ do: what }) => void actions.push(what) }, { attempts: endedStep })
  await clock.advance(50)
  expect(takeSnapshot(observe(), 0, settings)?.host).toEqual({
    state: 'unusable',
    reason: 'HostUnusable',
    message: 'not starting work: the journal cannot be written: ENOSPC: no space left on device, write',
  })
  wakeup.wake()
  await clock.advance(50)
  expect(logged).toEqual(['journal cannot be written, waiting until it can']) // once for all retries
  expect(actions).toEqual([])
  isDiskFull = false
  await clock.advance(1_000) // no event wakes it
  expect(takeSnapshot(observe(), 0, settings)?.host).toEqual({ state: 'usable' })
  expect(written.at(-1)).toMatchObject({ nodeUid: 'u' })
})

test('a journal that did not change is not written', async () => {
  void startLoop()
  await clock.advance(0)
  expect(written).toHaveLength(1)
  wakeup.wake()
  await clock.advance(60_000)
  expect(written).toHaveLength(1)
})

test('a decision without a Node is put off until the next wake', async () => {
  let looks = 0
  void startLoop({ takeSnapshot: () => void looks++ as undefined })
  await clock.advance(0)
  expect(looks).toBe(1)
  wakeup.wake()
  await clock.advance(0)
  expect(looks).toBe(2)
  await clock.advance(60_000)
  expect(looks).toBe(3)
})

test('the owners forget what the plan does not need', async () => {
  const retained: ReadonlySet<string>[] = []
  void startLoop({ retain: (needed) => void retained.push(needed) })
  await clock.advance(0)
  expect(retained.map((needed) => [...needed])).toEqual([[]])
})

test('the loop ends when its signal aborts', async () => {
  const ended = startLoop()
  await clock.advance(0)
  stopping.abort()
  await expect(ended).resolves.toBeUndefined()
})

test('a journal that cannot be read counts as empty and is logged', async () => {
  const store = createJournalStore(
    { read: async () => ({ state: 'unreadable', why: 'not JSON' }), write: async () => undefined },
    { ...createLog('silent', {}), error: (fields) => void logged.push(JSON.stringify(fields)) },
    sameTimes,
  )
  await store.load()
  expect([store.current(), logged]).toEqual([emptyJournal(''), ['{"detail":"not JSON"}']])
})

test('an action that fails is retried after 1 s, then twice as long each time up to 60 s, and wakes do not shorten it', async () => {
  await loadCanceledStep()
  const attemptsAtS: number[] = []
  const startMs = clock.wallMs()
  const execute = async ({ do: what }: Action): Promise<void> => {
    if (what !== 'stopStep') return
    attemptsAtS.push((clock.wallMs() - startMs) / 1_000)
    throw new Error('refused')
  }
  void startLoop({ execute })
  for (let passedMs = 0; passedMs < 200_000; passedMs += 500) {
    await clock.advance(500)
    wakeup.wake()
  }
  expect(attemptsAtS).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183])
})

test('a failing action is a failure as long as it is wanted and does not succeed', async () => {
  await loadCanceledStep()
  let fails = true
  let successes = 0
  const execute = async ({ do: what }: Action): Promise<void> => {
    if (what !== 'stopStep') return
    if (fails) throw Object.assign(new Error('EPERM: not permitted'), { code: 'EPERM' })
    if (++successes > 1) await new Promise(() => undefined) // the plan still contains it
  }
  void startLoop({ execute })
  await clock.advance(4_000)
  expect([...failures.current()]).toMatchObject([
    ['stopStep stop/x', { reason: 'HostUnusable', message: expect.stringMatching(/^cannot stop apply run.sh: EPERM/) }],
  ])
  fails = false
  await clock.advance(10_000)
  expect(failures.current().size).toBe(0)
})

test('an action that ends with a mistake of the program is an internal error, is counted, and is retried', async () => {
  await loadCanceledStep()
  const rejected: string[] = []
  const failed: string[] = []
  const execute = async ({ do: what }: Action): Promise<void> => {
    if (what === 'stopStep') throw new TypeError('undefined is not a function')
  }
  void startLoop({
    execute,
    onActionRejected: ({ key }) => void rejected.push(key),
    onActionFailed: ({ key }) => void failed.push(key),
  })
  await clock.advance(1_500)
  expect([rejected, failed]).toEqual([['stop/x', 'stop/x'], []])
  expect([...failures.current().values()]).toMatchObject([{ reason: 'InternalError' }])
})

test('a decision that throws is reported on the Node, repeated with backoff, and ends no step', async () => {
  const skyhook = { metadata: { name: 's', uid: 's-uid', resourceVersion: '1' }, spec: {}, budget: {}, stale: false }
  let isBroken = true
  let thrown = 0
  const executed: Action[] = []
  const errors: string[] = []
  void startLoop({
    takeSnapshot(nowMs) {
      const snapshot = takeSnapshot(observe({ skyhooks: known([skyhook]) }), nowMs, settings)
      if (!snapshot || !isBroken) return snapshot
      return {
        ...snapshot,
        get hostFolders(): never {
          thrown++
          throw new Error('completeStage: the stage is retrying')
        },
      }
    },
    async execute(action) {
      executed.push(action)
      if (!isBroken) await new Promise(() => undefined) // no watch event shows the changed Node
    },
    onDecisionFailed: (_, snapshot, reasons) => void errors.push(`${snapshot?.bootId} ${[...reasons.keys()].join()}`),
  })
  for (let passedMs = 0; passedMs < 14_000; passedMs += 100) {
    await clock.advance(100)
    wakeup.wake()
  }
  expect([thrown, errors]).toEqual([4, Array.from({ length: 4 }, () => 'boot-1 s')])
  expect(executed[0]).toMatchObject({
    do: 'publish',
    patch: {
      annotations: { 'skyhook.nvidia.com/reason_s': expect.stringContaining('"reason":"InternalError"') },
      labels: {},
    },
  })
  isBroken = false
  await clock.advance(1_000)
  expect(failures.current().size).toBe(0)
})
