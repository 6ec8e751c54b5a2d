import { beforeEach, expect, test } from 'vitest'
import { createHostFiles, type HostFiles } from '../../../test/kit/files/host-files.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { emptyJournal, type Journal, type SkyhookRecord } from '../../schemas/journal.ts'
import type { PackageProgress } from '../../schemas/package-record.ts'
import { createLog } from '../telemetry/log.ts'
import { type CrashLoop, createCrashLoop } from './crash-loop.ts'

const minuteMs = 60_000
const traceFile = '/run/skyhook/crash-loop'

let files: HostFiles
let clock: VirtualClock
/** One for each crash of this test's processes. */
let wakes: true[]
let messages: string[]

beforeEach(() => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  files = createHostFiles(clock)
  wakes = []
  messages = []
})

const work = { digest: 'd', generation: 1, inputs: 'i', packageName: 'p', packageVersion: '1' }
/** A journal with one package in this stage, after this many steps of it; `number` counts the attempts. */
function journalAt(stage: 'apply' | 'config', passed = 0, number = 1): Journal {
  const end = { result: 'ok', endedAtMs: 1 } as const
  const step = { id: 'x', unit: 'u', mode: stage, index: 0, path: 'p', bootId: 'b', startedAtMs: 1 } as const
  const steps = Array.from({ length: passed }, () => ({ ...step, result: end }))
  const progress: PackageProgress = { state: 'running', stage, attempt: { number, startedAtMs: 1, steps, inputs: 'i' } }
  const record: SkyhookRecord = {
    uid: 'u',
    rev: number,
    reboots: {},
    flags: {},
    installedVersions: {},
    lifecycle: { startedAtMs: 1, generation: 1 },
    packages: { 'p|1': { name: 'p', version: '1', image: 'i', restarts: 0, work, progress } },
  }
  return { ...emptyJournal('n'), skyhooks: { s: record } }
}

/** A process that starts now, with the files of the last one. */
async function startProcess(journal: Journal): Promise<CrashLoop> {
  const note = (_: object, message: string): void => void messages.push(message)
  const log = { ...createLog('silent', {}), error: note, warn: note, info: note }
  const ownWakes = wakes
  const crashLoop = createCrashLoop({ root: files.root, clock, log, wake: () => void ownWakes.push(true) })
  await crashLoop.begin(journal)
  return crashLoop
}

type JournalOf = (process: number) => Journal

/** Processes that crash, one per minute. Returns the last one. */
async function crash(times: number, journalOf: JournalOf = () => journalAt('apply')): Promise<CrashLoop> {
  let last = await startProcess(journalOf(0))
  for (let count = 1; count <= times; count++) {
    await clock.advance(minuteMs)
    last = await startProcess(journalOf(count))
  }
  return last
}

test('an agent that ended five times at the same place of its work stands down for half an hour, and says so', async () => {
  expect((await crash(4)).reason()).toBeUndefined()
  await clock.advance(minuteMs)
  const fifth = await startProcess(journalAt('apply'))
  expect(fifth.reason()).toContain('the agent ended 5 times in a row at the same place of this work')
  expect(messages).toEqual(['agent ended repeatedly, standing down'])
  await clock.advance(30 * minuteMs - 1)
  expect([fifth.reason() === undefined, wakes]).toEqual([false, []])
  await clock.advance(1)
  expect([fifth.reason(), wakes]).toEqual([undefined, [true]])
})

test('attempts that are counted up do not hide that the agent gets nowhere', async () => {
  expect((await crash(5, (count) => journalAt('apply', 0, count))).reason()).toBeDefined()
})

test.each<[string, JournalOf]>([
  ['gets on by a step each time', (count) => journalAt('apply', count)],
  ['gets on by a stage', (count) => journalAt(count < 3 ? 'apply' : 'config')],
  ['has no work under way', () => emptyJournal('n')],
])('an agent that %s does not stand down', async (_, journalOf) => {
  expect((await crash(5, journalOf)).reason()).toBeUndefined()
})

test('crashes far apart are not a loop', async () => {
  await crash(4)
  await clock.advance(11 * minuteMs)
  expect((await startProcess(journalAt('apply'))).reason()).toBeUndefined()
})

test('an agent that ends while it stands down continues to stand down, and no longer than it would have', async () => {
  await crash(5)
  await clock.advance(20 * minuteMs)
  const next = await startProcess(journalAt('apply'))
  expect(next.reason()).toContain('5 times')
  await clock.advance(10 * minuteMs)
  expect(next.reason()).toBeUndefined()
})

test('an agent that ends once more when it tries again stands down at once', async () => {
  const last = await crash(5)
  await clock.advance(30 * minuteMs)
  expect(last.reason()).toBeUndefined()
  expect(wakes).toEqual([true])
  await clock.advance(minuteMs)
  expect((await startProcess(journalAt('apply'))).reason()).toBeDefined()
})

test('an agent that was asked to end leaves no count', async () => {
  const last = await crash(5)
  await last.end()
  expect(files.exists(traceFile)).toBe(false)
  expect((await startProcess(journalAt('apply'))).reason()).toBeUndefined()
})

test('an agent without work writes nothing', async () => {
  const crashLoop = await startProcess(emptyJournal('n'))
  await crashLoop.end()
  expect([files.exists('/run/skyhook'), messages]).toEqual([false, []])
})

test.each<[string, () => void]>([
  ['is damaged', () => files.write(traceFile, '{"place":')],
  ['cannot be read', () => (files.remove(traceFile), files.makeFolder(traceFile))],
])('an agent works when the count %s', async (_, damage) => {
  await crash(5)
  damage()
  expect((await startProcess(journalAt('apply'))).reason()).toBeUndefined()
})
