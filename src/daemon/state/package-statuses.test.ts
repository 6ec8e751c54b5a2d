import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemRandom } from '../platform/system-clock.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import { type PackageRecord, emptyJournal } from '../../schemas/journal.ts'
import { newSkyhookRecord } from '../../stages/model/plan-builder.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { followPackageStatuses, type PackageStatuses } from './package-statuses.ts'
import { newState, type State } from './state.ts'

const work = { digest: 'sha256:1', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' }
const entry = (name: string, change: Partial<PackageRecord> = {}): PackageRecord => ({
  name,
  version: '1.0.0',
  image: 'r/p',
  stage: 'config',
  state: 'complete',
  restarts: 0,
  work,
  ...change,
})

let folder: string
let state: State
let statuses: PackageStatuses
let wakeCount = 0
const warnings: string[] = []
const log: Log = { ...createLog('silent', {}), warn: (_, message) => void warnings.push(message) }

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'statuses-'))
  await mkdir(join(folder, 's/status'), { recursive: true })
  const { work: _, ...notStarted } = entry('idle')
  const packages = { 'a|1.0.0': entry('a'), 'b|1.0.0': entry('b'), 'idle|1.0.0': notStarted }
  const record = { ...newSkyhookRecord('uid'), packages }
  state = newState({ ...emptyJournal('node'), skyhooks: { s: record, gone: { ...record, orphaned: true } } }, 'boot')
  wakeCount = 0
  warnings.length = 0
  statuses = followPackageStatuses(
    createHostRoot(folder, systemRandom),
    { copyDirRoot: '/', agentLogRoot: '/log' },
    state,
    log,
    () => {
      wakeCount += 1
    },
  )
})
afterEach(async () => {
  statuses.close()
  await rm(folder, { recursive: true })
})
const write = async (name: string, message: string): Promise<void> =>
  await writeFile(
    join(folder, `s/status/${name}.json`),
    JSON.stringify({ v: 1, package: name, bootId: 'boot', message, requests: { run: false, interrupt: false } }),
  )
const messages = (): Record<string, string> =>
  state.statuses.known
    ? Object.fromEntries(
        [...state.statuses.value].map(([key, read]) => [key, read.state === 'read' ? read.status.message : read.why]),
      )
    : { unknown: state.statuses.why }

test('nothing is known before the first look, and nothing is there after it', async () => {
  expect(messages()).toEqual({ unknown: expect.stringContaining('not been looked at') as string })
  await statuses.refresh()
  expect([messages(), wakeCount]).toEqual([{}, 1])
})

test('what is new, changed and gone wakes the agent; what stays does not', async () => {
  await write('a', 'one')
  await write('idle', 'not begun') // and no package of that name ever wrote anything
  await write('stranger', 'of no package')
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

test('an answer is read when it is asked for', async () => {
  await write('a', 'one')
  await statuses.refresh()
  await write('a', 'now')
  await statuses.readForStage({ do: 'readStatus', key: 'k', skyhook: 's', package: 'a', requestId: 'q' })
  expect(state.requestedStatuses.get('q')).toMatchObject({ state: 'read', status: { message: 'now' } })
})

test('a folder that is none keeps what was known, and is told once', async () => {
  await write('a', 'one')
  await statuses.refresh()
  await rm(join(folder, 's/status'), { recursive: true })
  await writeFile(join(folder, 's/status'), '')
  await statuses.refresh()
  await statuses.refresh()
  expect([messages(), warnings.length]).toEqual([{ 's/a': 'one' }, 1])
})
