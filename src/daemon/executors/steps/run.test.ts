import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { plainStep } from '../../../../test/support/node-simulator/package-content.ts'
import { settingsOf } from '../../../../test/support/sample-settings.ts'
import { startFakeSystemd } from '../../../../test/support/fake-systemd.ts'
import { createVirtualClock, type VirtualClock } from '../../../../test/support/virtual-clock.ts'
import { createHostRoot } from '../../../host/fs/host-root.ts'
import { emptyJournal, type RunningPackage, type StepAttempt } from '../../../schemas/journal.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import { createFailureBook } from '../../failures/book.ts'
import { systemRandom } from '../../platform/system-clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { startStepRunner, type StepRunner } from './run.ts'

const attempt: StepAttempt = {
  id: 'x',
  unit: 'x.service',
  mode: 'apply',
  index: 0,
  path: 'run.sh',
  bootId: 'boot-1',
  startedAtMs: 0,
}
const step = plainStep('run.sh')
const record: RunningPackage = {
  name: 'p',
  version: '1.0.0',
  image: 'r/p',
  restarts: 0,
  work: { digest: 'sha256:abc', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' },
  progress: {
    state: 'running',
    stage: 'apply',
    attempt: { number: 0, startedAtMs: 0, steps: [attempt], inputs: '' },
  },
}
const action: StartStep = {
  do: 'startStep',
  key: 'step/x',
  view: { metadata: { name: 's', uid: 'u', resourceVersion: '1' }, spec: {}, budget: {}, stale: false },
  record,
  spec: { version: '1.0.0', image: 'r/p' },
  stage: 'apply',
  attempt,
  step,
  config: { packageName: 'p', packageVersion: '1.0.0', expectedConfigFiles: [], modes: { apply: [step] } },
  needsCopyDir: false,
  stageStartedAtMs: 0,
  previousVersion: 'unknown',
}

let folder: string
let systemd: Awaited<ReturnType<typeof startFakeSystemd>>
let clock: VirtualClock
let runner: StepRunner

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-'))
  const script = join(folder, 'var/lib/skyhook/s/p-1.0.0-u-1/skyhook_dir/run.sh')
  for (const path of [script, join(folder, 'bin/sh')]) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
  }
  systemd = await startFakeSystemd()
  clock = createVirtualClock()
  runner = startStepRunner({
    root: createHostRoot(folder, systemRandom),
    units: systemd.units,
    connection: systemd.connection,
    hostSource: {
      bootId: () => 'boot-1',
      refreshBootId: async () => undefined,
      folders: () => new Set(),
      loadFolders: async () => undefined,
      checkFitness: async () => undefined,
      state: () => ({ state: 'usable' }),
      report: () => undefined,
    },
    node: () => undefined,
    journal: () => emptyJournal('n'),
    settings: settingsOf('n', folder),
    references: { configMap: async () => undefined, secret: async () => undefined },
    contentOf: () => '/none',
    metrics: createMetrics({
      version: 'test',
      slots: () => [],
      oldestSlotAge: () => 0,
      fleetSeries: () => [],
      rebootsMade: () => 0,
      packageRequests: () => new Map(),
      isCensusLeader: () => false,
      reasons: () => new Map(),
      reflectorAges: () => new Map(),
    }),
    clock,
    failures: createFailureBook({ clock, random: systemRandom }),
    log: createLog('silent', {}),
    wake: () => undefined,
  })
})
afterEach(async () => {
  runner.close()
  await systemd[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const members = (): (string | undefined)[] =>
  systemd.bus.calledMembers().filter((member) => member === 'StartTransientUnit' || member === 'StopUnit')

/** systemd takes its time with starts: each is carried out and answered when this is called. */
function delayStarts(): () => void {
  const pending: (() => void)[] = []
  systemd.bus.answers('StartTransientUnit', ({ message, client }) => {
    pending.push(() => {
      systemd.hostUnits.set('x.service', { activeState: 'activating', subState: 'start' })
      client.send({ type: 2, replySerial: message.serial, signature: 'o', body: ['/job/1'] })
    })
    return 'silent'
  })
  systemd.bus.answers('StopUnit', () => {
    if (!systemd.hostUnits.delete('x.service')) return { error: 'org.freedesktop.systemd1.NoSuchUnit' }
    return { signature: 'o', body: ['/job/2'] }
  })
  return () => pending.splice(0).forEach((carryOut) => carryOut())
}

test('a step whose unit systemd refuses has failed to start, and is not started again', async () => {
  systemd.bus.answers('StartTransientUnit', {
    error: 'org.freedesktop.systemd1.BadUnitSetting',
    text: 'Unit x.service has a bad unit file setting.',
  })
  await runner.start(action)
  await runner.start(action)
  expect(members()).toEqual(['StartTransientUnit'])
  const detail = expect.stringMatching(
    /^systemd: Unit x\.service has a bad unit file setting\..*`journalctl -u x\.service`/,
  ) as string
  expect(runner.attempts().get('x')).toEqual({ state: 'ended', end: { outcome: 'failed-to-start', detail } })
})

test('a step that is stopped while its start is under way does not run afterwards', async () => {
  const carryOutStarts = delayStarts()
  const started = runner.start(action)
  await vi.waitFor(() => expect(members()).toEqual(['StartTransientUnit']))
  const stopped = runner.stop(attempt)
  await sleep(50)
  carryOutStarts()
  await Promise.all([started, stopped])
  expect(members()).toEqual(['StartTransientUnit', 'StopUnit'])
  expect([...systemd.hostUnits.keys()]).toEqual([])
  expect(runner.attempts().get('x')?.state).toBe('ended')
})

test('a step that is stopped before its start was sent is not started any more', async () => {
  const started = runner.start(action)
  const stopped = runner.stop(attempt)
  await Promise.all([started, stopped])
  expect(members()).toEqual(['StopUnit'])
  await runner.start(action)
  expect(members()).toEqual(['StopUnit'])
})

test('a step whose start has no answer is stopped before it counts as ended', async () => {
  systemd.bus.answers('StartTransientUnit', ({ client }) => {
    systemd.hostUnits.set('x.service', { activeState: 'activating', subState: 'start' })
    client.hangUp()
    return 'silent'
  })
  const started = runner.start(action).catch(() => 'failed')
  await vi.waitFor(() => expect(members()).toEqual(['StartTransientUnit']))
  await runner.stop(attempt)
  expect(await started).toBe('failed')
  expect(members()).toEqual(['StartTransientUnit', 'StopUnit'])
  expect(runner.attempts().get('x')?.state).toBe('running') // until systemd says that it is over
})

test('a step that takes time to end is asked to stop once, and again after a minute', async () => {
  systemd.hostUnits.set('x.service', { activeState: 'deactivating', subState: 'stop-sigterm' })
  systemd.bus.answers('StopUnit', () => ({ signature: 'o', body: ['/job/2'] }))
  await runner.stop(attempt)
  await runner.stop(attempt)
  await clock.advance(59_000)
  await runner.stop(attempt)
  expect(members()).toEqual(['StopUnit'])
  await clock.advance(1_000)
  await runner.stop(attempt)
  expect(members()).toEqual(['StopUnit', 'StopUnit'])
})
