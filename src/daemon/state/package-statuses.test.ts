import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import { type Journal, emptyJournal } from '../../schemas/journal.ts'
import type { PackageRecord, StartedPackage } from '../../schemas/package-record.ts'
import { newSkyhookRecord } from '../../stages/model/plan-builder.ts'
import { createFailureBook, type FailureBook } from '../failures/book.ts'
import { createLog } from '../telemetry/log.ts'
import { followPackageStatuses, type PackageStatuses } from './package-statuses.ts'

const work = { digest: 'sha256:1', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' }
const entry = (name: string, change: Partial<StartedPackage> = {}): StartedPackage => ({
  name,
  version: '1.0.0',
  image: 'r/p',
  progress: { state: 'complete', stage: 'config' },
  restarts: 0,
  work,
  ...change,
})

let folder: string
let journal: Journal
let statuses: PackageStatuses
let clock: VirtualClock
let failures: FailureBook
let wakeCount = 0
const log = createLog('silent', {})

beforeEach(async () => {
  folder = temporaryFolder()
  await mkdir(join(folder, 's/status'), { recursive: true })
  const idle: PackageRecord = { ...entry('idle'), work: undefined, progress: { state: 'due', stage: 'apply' } }
  const packages = { 'a|1.0.0': entry('a'), 'b|1.0.0': entry('b'), 'idle|1.0.0': idle }
  const record = { ...newSkyhookRecord('uid'), packages }
  journal = { ...emptyJournal('node'), skyhooks: { s: record, gone: { ...record, orphaned: true } } }
  wakeCount = 0
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  failures = createFailureBook({ clock, random: createSeededRandom(1) })
  statuses = followPackageStatuses({
    root: createHostRoot(folder, createSeededRandom(1)),
    folders: { copyDirRoot: '/', agentLogRoot: '/log' },
    journal: () => journal,
    clock,
    failures,
    log,
    wake: () => {
      wakeCount += 1
    },
  })
})
afterEach(async () => {
  statuses.close()
})
const write = async (name: string, message: string): Promise<void> =>
  await writeFile(
    join(folder, `s/status/${name}.json`),
    JSON.stringify({ v: 1, package: name, bootId: 'boot', message, requests: { run: false, interrupt: false } }),
  )
function messages(): Record<string, string> {
  const current = statuses.current()
  if (!current.known) return { unknown: current.why }
  return Object.fromEntries(
    [...current.value].map(([key, read]) => [key, read.state === 'read' ? read.status.message : read.why]),
  )
}

test('the statuses are unknown before the first look and empty after it', async () => {
  expect(messages()).toEqual({ unknown: expect.stringContaining('are not read yet') as string })
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{}, 1])
})

test('a status that is new, changed or gone wakes the agent, and one that stays does not', async () => {
  await write('a', 'one')
  await write('idle', 'not started') // and no package with that name has written anything
  await write('stranger', 'of no package')
  await mkdir(join(folder, 'gone/status'), { recursive: true })
  await writeFile(join(folder, 'gone/status/a.json'), '{}') // the Skyhook was deleted
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{ 's/a': 'one' }, 1])
  await statuses.refresh()
  expect(wakeCount).toBe(1)
  await write('a', 'another')
  await write('b', 'two')
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{ 's/a': 'another', 's/b': 'two' }, 2])
  await rm(join(folder, 's/status/a.json'))
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{ 's/b': 'two' }, 3])
})

test('the answer to a question is read now and forgotten with the question', async () => {
  await write('a', 'one')
  await statuses.refresh()
  await write('a', 'now')
  await statuses.readForStage({ do: 'readStatus', key: 'k', skyhook: 's', package: 'a', requestId: 'q' })
  expect(statuses.requested().get('q')).toMatchObject({ state: 'read', status: { message: 'now' } })
  statuses.retain(new Set(['q']))
  expect([...statuses.requested().keys()]).toEqual(['q'])
  statuses.retain(new Set())
  expect(statuses.requested().size).toBe(0)
})

test('the files are looked at every ten seconds until the source is closed', async () => {
  await write('a', 'one')
  await clock.advance(10_000)
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{ 's/a': 'one' }, 1])
  expect(clock.pendingTimers).toBe(1)
  statuses.close()
  expect(clock.pendingTimers).toBe(0)
})

test('a folder that cannot be read keeps what was known and is a failure as long as it lasts', async () => {
  await write('a', 'one')
  await statuses.refresh()
  await rm(join(folder, 's/status'), { recursive: true })
  await symlink('status', join(folder, 's/status')) // a link to itself
  await statuses.refresh()
  await statuses.refresh()
  expect(messages()).toEqual({ 's/a': 'one' })
  expect([...failures.current().values()]).toMatchObject([{ reason: 'HostUnusable' }])
  await rm(join(folder, 's/status'))
  await statuses.refresh()
  expect(failures.current().size).toBe(0)
})
