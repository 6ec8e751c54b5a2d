import { expect, test } from 'vitest'
import { observeStepUnit } from '../../../src/host/step/observe.ts'
import { startStepUnit } from '../../../src/host/step/start.ts'
import { restartService } from '../../../src/host/systemd/service-restart.ts'
import type { StepRun } from './step-processes.ts'
import { connectSystemd } from './systemd-connection.ts'
import type { ServiceRestart } from './systemd.ts'

/** The agent's own code for steps and services, on a simulated host. */
async function startHost(run: StepRun) {
  const { simulated: host, clock, root, units, settled } = connectSystemd(run)
  await root.mkdirp('/opt')
  await root.writeFile('/opt/step.sh', '#!/bin/sh\n', 0o755)
  const step = { id: 'a', unit: 'skyhookd-a.service' }
  return {
    clock,
    host,
    units,
    step,
    settled,
    start: (timeoutMs = 60_000) =>
      settled(
        startStepUnit(
          { units, root },
          {
            ...step,
            description: 'Skyhook s: tuned 1.0.0, apply step.sh',
            command: ['/opt/step.sh'],
            workingDirectory: '/opt',
            environment: {},
            stdoutFile: '/opt/out',
            stderrFile: '/opt/err',
            timeoutMs,
            stopTimeoutMs: 5_000,
          },
        ),
        0,
      ),
    observe: () => settled(observeStepUnit({ units, root }, step), 0),
  }
}

test.each([
  [{ durationMs: 100 }, { outcome: 'exited', code: 0 }],
  [
    { durationMs: 100, exitCode: 7 },
    { outcome: 'exited', code: 7 },
  ],
  [{ durationMs: 90_000 }, { outcome: 'timeout' }],
] as const)('a step that does %j is observed running, and then ended with %j', async (run, result) => {
  const { clock, start, observe } = await startHost(run)
  expect(await start()).toEqual({ started: true, found: false })
  expect(await observe()).toEqual({ state: 'running' })
  await clock.advance(70_000)
  expect(await observe()).toEqual({ state: 'ended', result, source: 'file' })
  expect(await start()).toEqual({ started: true, found: true })
})

test.each([
  [0, { outcome: 'killed', signal: 'SIGTERM' }],
  [Infinity, { outcome: 'timeout' }],
] as const)('a step that takes %d ms to stop is observed as %j', async (stopMs, result) => {
  const { clock, units, step, start, observe, settled } = await startHost({ durationMs: 60_000, stopMs })
  await start()
  expect(await settled(units.stop(step.unit), 0)).toBe(true)
  await clock.advance(6_000)
  expect(await observe()).toEqual({ state: 'ended', result, source: 'file' })
  expect(await settled(units.stop('skyhookd-none.service'), 0)).toBe(false)
})

test('a step whose record cannot be written is known from its unit', async () => {
  const { clock, host, start, observe } = await startHost({ durationMs: 100, exitCode: 3 })
  await start()
  host.disk.setFull(true)
  await clock.advance(1_000)
  expect(await observe()).toEqual({ state: 'ended', result: { outcome: 'exited', code: 3 }, source: 'unit' })
})

test('a step that a shutdown ends has a record that says so, and a power cut leaves none', async () => {
  for (const [goDown, expected] of [
    ['reboot', { state: 'ended', result: { outcome: 'killed', signal: 'SIGTERM' }, isHostStopping: true }],
    ['cutPower', { state: 'absent' }],
  ] as const) {
    const { clock, host, start, observe, settled, units } = await startHost({ durationMs: 60_000 })
    await start()
    host[goDown]()
    await clock.advance(30_000)
    expect(host.power()).toBe('up')
    expect(host.disk.locate('/run/skyhook').node).toBeUndefined()
    host.startProcess('agent')
    expect(await settled(units.listLive('skyhookd-*.service').catch(String), 20_000)).toEqual([])
    expect(await observe()).toMatchObject(expected)
  }
})

test.each([
  ['done', { outcome: 'restarted' }],
  ['failed', { outcome: 'failed', reason: 'job-failed' }],
  ['dies', { outcome: 'failed', reason: 'not-active' }],
  ['condition', { outcome: 'failed', reason: 'condition' }],
] satisfies readonly [ServiceRestart['result'], object][])(
  'a service whose restart ends with %s is reported as %j',
  async (result, expected) => {
    const { clock, host, units, settled } = await startHost({ durationMs: 1 })
    host.systemd.addService('web.service', { restart: () => ({ durationMs: 500, result }) })
    const previousInvocation = host.systemd.get('web.service')?.invocationId ?? ''
    const restart = restartService({ units, clock, unit: 'web.service', previousInvocation })
    expect(await settled(restart, 5_000)).toMatchObject(expected)
    const unknown = restartService({ units, clock, unit: 'none.service', previousInvocation: '' })
    expect(await settled(unknown, 1_000)).toMatchObject({ outcome: 'failed', reason: 'no-such-unit' })
  },
)
