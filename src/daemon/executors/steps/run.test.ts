import { afterEach, beforeEach, expect, test } from 'vitest'
import { plainStep } from '../../../../test/kit/node-simulator/package-content.ts'
import { settingsOf } from '../../../../test/kit/objects/sample-settings.ts'
import { connectSystemd, type SystemdConnection } from '../../../../test/kit/host/systemd-connection.ts'
import { createSeededRandom, type VirtualClock } from '../../../../test/kit/virtual-clock.ts'
import { sleep } from '../../../schemas/clock.ts'
import { emptyJournal } from '../../../schemas/journal.ts'
import type { RunningPackage, StepAttempt } from '../../../schemas/package-record.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import { createFailureBook } from '../../failures/book.ts'
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

let systemd: SystemdConnection
let clock: VirtualClock
let runner: StepRunner

beforeEach(async () => {
  systemd = connectSystemd({ durationMs: 60_000, stopMs: 500 })
  clock = systemd.clock
  const folder = '/var/lib/skyhook/s/p-1.0.0-u-1/skyhook_dir'
  await systemd.root.mkdirp(folder)
  await systemd.root.writeFile(`${folder}/run.sh`, '#!/bin/sh\n', 0o755)
  runner = startStepRunner({
    root: systemd.root,
    units: systemd.units,
    connection: systemd.connection,
    hostSource: {
      bootId: () => 'boot-1',
      refreshBootId: async () => undefined,
      rebootBarrier: () => undefined,
      folders: () => new Set(),
      loadFolders: async () => undefined,
      checkFitness: async () => undefined,
      state: () => ({ state: 'usable' }),
      portTaken: () => undefined,
      report: () => undefined,
    },
    node: () => undefined,
    journal: () => emptyJournal('n'),
    settings: settingsOf('n', '/'),
    references: { configMap: async () => undefined, secret: async () => undefined },
    contentOf: () => '/none',
    metrics: createMetrics({
      version: 'test',
      slots: () => [],
      oldestSlotAge: () => 0,
      fleetSeries: () => [],
      rebootsMade: () => 0,
      work: () => ({ stepAges: new Map(), failedAttempts: 0, nextAttempt: 0 }),
      packageRequests: () => new Map(),
      isCensusCounting: () => false,
      reasons: () => new Map(),
      reflectorAges: () => new Map(),
    }),
    clock,
    failures: createFailureBook({ clock, random: createSeededRandom(1) }),
    log: createLog('silent', {}),
    wake: () => undefined,
  })
})
afterEach(async () => await runner.close())

const members = (): (string | undefined)[] =>
  systemd.calledMembers().filter((member) => member === 'StartTransientUnit' || member === 'StopUnit')

test('a step whose unit systemd refuses has failed to start, and is not started again', async () => {
  systemd.simulated.systemd.setRefusingSteps(true)
  await runner.start(action)
  await runner.start(action)
  expect(members()).toEqual(['StartTransientUnit'])
  const detail = expect.stringMatching(
    /^systemd: Unit x\.service has a bad unit file setting\..*`journalctl -u x\.service`/,
  ) as string
  expect(runner.attempts().get('x')).toEqual({ state: 'ended', end: { outcome: 'failed-to-start', detail } })
})

test('a step that is stopped while its start is under way does not run afterwards', async () => {
  systemd.answers('StartTransientUnit', (_, carryOut) => sleep(clock, 50).then(carryOut))
  const started = runner.start(action)
  await clock.advance(0)
  expect(members()).toEqual(['StartTransientUnit'])
  const stopped = runner.stop(attempt)
  await systemd.settled(Promise.all([started, stopped]), 100)
  expect(members()).toEqual(['StartTransientUnit', 'StopUnit'])
  await clock.advance(1_000)
  await runner.stop(attempt) // looks at it again
  expect(systemd.simulated.systemd.runningSteps()).toEqual([])
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
  systemd.answers('StartTransientUnit', 'lost-answer')
  const started = runner.start(action).catch(() => 'failed')
  await clock.advance(0)
  expect(members()).toEqual(['StartTransientUnit'])
  await systemd.settled(runner.stop(attempt), 100)
  expect(await started).toBe('failed')
  expect(members()).toEqual(['StartTransientUnit', 'StopUnit'])
  expect(runner.attempts().get('x')?.state).toBe('running')
  await clock.advance(1_000)
  await runner.stop(attempt) // looks at it again
  expect(runner.attempts().get('x')?.state).toBe('ended')
})

test('a step that takes time to end is asked to stop once, and again after a minute', async () => {
  systemd.setUnit('x.service', { activeState: 'deactivating', subState: 'stop-sigterm' })
  await runner.stop(attempt)
  await runner.stop(attempt)
  await clock.advance(59_000)
  await runner.stop(attempt)
  expect(members()).toEqual(['StopUnit'])
  await clock.advance(1_000)
  await runner.stop(attempt)
  expect(members()).toEqual(['StopUnit', 'StopUnit'])
})
