import { afterEach, beforeEach, expect, test } from 'vitest'
import { createHostFiles, type HostFiles } from '../../../../test/kit/files/host-files.ts'
import { connectSystemd, type SystemdConnection } from '../../../../test/kit/host/systemd-connection.ts'
import { createSeededRandom } from '../../../../test/kit/virtual-clock.ts'
import { emptyJournal, type Journal } from '../../../schemas/journal.ts'
import type { StepAttempt } from '../../../schemas/package-record.ts'
import { createFailureBook } from '../../failures/book.ts'
import { type Attempts, createAttempts, type StepObserver, startStepObserver } from './observe.ts'

const step: StepAttempt & { readonly package: string } = {
  package: 'p',
  id: 'x',
  unit: 'x.service',
  mode: 'apply',
  index: 0,
  path: 'run.sh',
  bootId: 'boot-1',
  startedAtMs: 0,
}

let systemd: SystemdConnection
let files: HostFiles
let attempts: Attempts
let bootReads: number
let wakes: number
let journal: Journal
let observer: StepObserver

beforeEach(() => {
  systemd = connectSystemd()
  files = createHostFiles(systemd.clock)
  const { clock } = systemd
  attempts = createAttempts()
  bootReads = 0
  wakes = 0
  const record = { uid: 'u', rev: 1, packages: {}, reboots: {}, flags: {}, installedVersions: {}, canceling: [step] }
  journal = { ...emptyJournal('n'), skyhooks: { s: record } }
  observer = startStepObserver({
    host: { root: files.root, units: systemd.units },
    connection: systemd.connection,
    hostSource: { bootId: () => 'boot-1', refreshBootId: async () => void bootReads++ },
    journal: () => journal,
    attempts,
    clock,
    failures: createFailureBook({ clock, random: createSeededRandom(1) }),
    wake: () => void wakes++,
  })
})
afterEach(() => observer.close())

const running = { activeState: 'active', subState: 'running' }
const failed = { activeState: 'failed', subState: 'failed', result: 'exit-code', execMainCode: 1, execMainStatus: 3 }

test('an attempt without a unit is absent, and said to be so once', async () => {
  await observer.observe(step)
  await observer.observe(step)
  expect([attempts.stateOf('x'), wakes]).toEqual(['absent', 1])
})

test('the open attempts are looked at together with the boot id', async () => {
  systemd.setUnit('x.service', running)
  await observer.observeOpen()
  expect([attempts.stateOf('x'), bootReads > 0, wakes > 0]).toEqual(['running', true, true])
})

test('an end is final', async () => {
  systemd.setUnit('x.service', failed)
  await observer.observe(step)
  expect(attempts.current().get('x')).toMatchObject({ state: 'ended', end: { outcome: 'failed-to-start' } })
  systemd.setUnit('x.service', running)
  await observer.observe(step)
  expect([attempts.stateOf('x'), wakes]).toEqual(['ended', 1])
})

test('a failed attempt shows the end of its log', async () => {
  files.write('/err.log', 'it broke\n')
  files.write('/out.log', '')
  const note = { files: { stdout: '/out.log', stderr: '/err.log' }, secrets: [] }
  files.write('/run/skyhook/x.note', JSON.stringify(note))
  systemd.setUnit('x.service', failed)
  await observer.observe(step)
  expect(attempts.current().get('x')).toMatchObject({ logTail: expect.stringContaining('it broke') as string })
})

test('a signal of systemd leads to a look at its attempt alone', async () => {
  systemd.setUnit('x.service', running)
  await observer.observeOpen()
  systemd.setUnit('x.service', failed)
  systemd.jobRemoved('other.service')
  systemd.jobRemoved('x.service')
  await systemd.clock.advance(0)
  expect(attempts.stateOf('x')).toBe('ended')
})

test('running attempts are polled every ten seconds until the observer is closed', async () => {
  systemd.setUnit('x.service', running)
  await systemd.clock.advance(10_000)
  expect(attempts.stateOf('x')).toBe('running')
  observer.close()
  expect(systemd.clock.pendingTimers).toBe(0)
})

test('an attempt that was seen running and is gone without a result has an unknown outcome', async () => {
  systemd.setUnit('x.service', running)
  await observer.observe(step)
  systemd.setUnit('x.service', undefined)
  await observer.observe(step)
  expect(attempts.current().get('x')).toEqual({
    state: 'ended',
    end: { outcome: 'unknown', detail: 'x.service is gone and left no result' },
  })
})

test('an attempt that started while systemd was asked about it is not gone', async () => {
  journal = emptyJournal('n') // the new connection must not observe it, too
  const observed = observer.observe(step) // asks before the start
  attempts.running('x')
  await observed
  expect(attempts.stateOf('x')).toBe('running')
})

test('an attempt that nobody looked at has no state', () => {
  expect(createAttempts().stateOf('x')).toBeUndefined()
})

test('an attempt ends with a tail of its log where there is one', () => {
  const attempts = createAttempts()
  attempts.ended('x', { outcome: 'exited', code: 0 }, '')
  attempts.ended('y', { outcome: 'exited', code: 1 }, 'tail')
  expect([...attempts.current().values()]).toEqual([
    { state: 'ended', end: { outcome: 'exited', code: 0 } },
    { state: 'ended', end: { outcome: 'exited', code: 1 }, logTail: 'tail' },
  ])
})

test('a forgotten attempt is gone', () => {
  const attempts = createAttempts()
  attempts.running('x')
  attempts.cancel('x')
  attempts.forget('x')
  expect([attempts.current().size, attempts.isCanceled('x')]).toEqual([0, false])
})
