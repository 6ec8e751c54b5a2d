import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { connectSystemd } from '../../../test/kit/host/systemd-connection.ts'
import type { Unit } from '../../../test/kit/host/unit.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { readStepNote, sweepStepFiles } from './files.ts'
import { observeStepUnit } from './observe.ts'
import { forgetStepUnit, startStepUnit, type StepUnitRequest } from './start.ts'
import { infinityUsec } from '../systemd/unit-properties.ts'

const unitName = 'skyhookd-a1.service'
const step = { id: 'a1', unit: unitName }
const currentBootId = '5480b099-1e8c-4755-b850-3daeeb4791a8'
const unitInvocationId = 'a'.repeat(32)
const request: StepUnitRequest = {
  ...step,
  description: 'Skyhook demo: tuning 1.0.0, apply run.sh',
  command: ['/opt/step.sh', '$1'],
  workingDirectory: '/opt',
  environment: { TOKEN: 'a "secret"' },
  stdoutFile: '/var/log/o',
  stderrFile: '/var/log/e',
  stopTimeoutMs: 30_000,
}

function stepHost() {
  const systemd = connectSystemd()
  const { folder: mount, host: root } = temporaryHost()
  const results = join(mount, 'var/lib/skyhook/.agent/results')
  const environmentFolder = join(mount, 'run/skyhook')
  return {
    ...systemd,
    host: { units: systemd.units, root },
    mount,
    results,
    environmentFolder,
    unit: (state: Partial<Unit>) => systemd.setUnit(unitName, state),
    record(changes: Record<string, string> = {}) {
      mkdirSync(results, { recursive: true })
      const record = {
        v: 1,
        attempt: 'a1',
        result: 'exit-code',
        code: 'exited',
        status: '3',
        invocation: unitInvocationId,
        boot: currentBootId,
        system: 'running',
        ...changes,
      }
      writeFileSync(join(results, 'a1'), `${JSON.stringify(record)}\n`)
    },
    started: () => {
      const call = systemd.calls.find(({ member }) => member === 'StartTransientUnit')
      const properties = (call?.body[2] ?? []) as [string, Variant][]
      return Object.fromEntries(properties.map(([name, { value }]) => [name, value]))
    },
  }
}

describe('starting a step', () => {
  test('starting a step requests a unit that leaves a record, with its secrets in their own file', async () => {
    const fake = stepHost()
    expect(await startStepUnit(fake.host, request)).toEqual({ started: true, found: false })
    expect(fake.started()).toEqual({
      Description: 'Skyhook demo: tuning 1.0.0, apply run.sh',
      Type: 'oneshot',
      CollectMode: 'inactive',
      AddRef: true,
      WorkingDirectory: '/opt',
      EnvironmentFiles: [['/run/skyhook/a1.env', false]],
      StandardOutputFileToAppend: '/var/log/o',
      StandardErrorFileToAppend: '/var/log/e',
      TimeoutStartUSec: infinityUsec,
      TimeoutStopUSec: 30_000_000n,
      KillMode: 'mixed',
      ExecStart: [['/opt/step.sh', ['/opt/step.sh', '$$1'], false]],
      ExecStopPost: [
        [
          '/bin/sh',
          ['/bin/sh', '/var/lib/skyhook/.agent/record-result', '/var/lib/skyhook/.agent/results', 'a1'],
          true,
        ],
      ],
    })
    const file = join(fake.environmentFolder, 'a1.env')
    expect(readFileSync(file, 'utf8')).toBe(
      'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\nHOME="/root"\nTOKEN="a \\"secret\\""\n',
    )
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(fake.environmentFolder).mode & 0o777).toBe(0o700)
  })

  test('starting a step passes on further properties and time limits', async () => {
    const fake = stepHost()
    const properties = { MemoryMax: 1024, MemoryLow: 512, CPUQuotaPerSecUSec: 500_000, CPUWeight: 50, Slice: 'a.slice' }
    await startStepUnit(fake.host, { ...request, properties, timeoutMs: 1500, stopTimeoutMs: 10 })
    expect(fake.started()).toMatchObject({
      MemoryMax: 1024n,
      MemoryLow: 512n,
      CPUQuotaPerSecUSec: 500_000n,
      CPUWeight: 50n,
      Slice: 'a.slice',
      TimeoutStartUSec: 1_500_000n,
    })
    expect(fake.started()['TimeoutStopUSec']).toBe(2_000_000n) // the recorder needs some of it
  })

  test.each<[string, Partial<StepUnitRequest>]>([
    ['workingDirectory', { workingDirectory: '/a\nExecStartPre=/bin/evil' }],
    ['stdoutFile', { stdoutFile: '/a\nb' }],
    ['stderrFile', { stderrFile: 'relative' }],
    ['command', { command: ['step.sh'] }],
    ['environment', { environment: { 'A-B': 'x' } }],
    ['unit', { unit: 'a b.service' }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['number', { properties: { MemoryMax: 0 } }],
    ['text', { properties: { Slice: 'a\nUser=root' } }],
  ])('a bad %s is refused before anything happens on the host', async (_, change) => {
    const fake = stepHost()
    expect(await startStepUnit(fake.host, { ...request, ...change })).toMatchObject({
      started: false,
      error: { kind: 'invalid' },
    })
    expect(readdirSync(fake.mount)).toEqual([])
    expect(fake.calls).toEqual([])
  })

  test('a step whose variable systemd would drop leaves nothing on the host, and a newer systemd starts it', async () => {
    const fake = stepHost()
    fake.setVersion('247.3-7+deb11u5')
    const withControl = { ...request, environment: { PEM: 'secret\r\n' } }
    const refusal = await startStepUnit(fake.host, withControl)
    const message = expect.stringContaining('environment: the value of PEM contains the control character U+000D')
    expect(refusal).toMatchObject({ started: false, error: { kind: 'invalid', message: message as unknown } })
    expect(JSON.stringify(refusal)).not.toContain('secret')
    expect(readdirSync(fake.mount)).toEqual([])
    expect(fake.calledMembers()).not.toContain('StartTransientUnit')
    fake.setVersion('248')
    expect(await startStepUnit(fake.host, withControl)).toEqual({ started: true, found: false })
  })

  test('a step whose variable counts on the version of systemd is not requested without a bus', async () => {
    const fake = stepHost()
    fake.connection.close()
    const start = await startStepUnit(fake.host, { ...request, environment: { PEM: 'secret\r\n' } })
    expect(start).toMatchObject({ started: false, error: { kind: 'not-connected' } })
    expect(readdirSync(fake.mount)).toEqual([])
  })

  test('starting a step again finds its unit and keeps it loaded', async () => {
    const fake = stepHost()
    fake.unit({ activeState: 'activating' })
    expect(await startStepUnit(fake.host, request)).toEqual({ started: true, found: true })
    expect(fake.calledMembers()).toContain('RefUnit')
    expect(existsSync(join(fake.environmentFolder, 'a1.env'))).toBe(true)
  })

  test('a start that systemd refuses leaves no secret behind', async () => {
    const fake = stepHost()
    fake.simulated.systemd.setRefusingSteps(true)
    expect(await startStepUnit(fake.host, request)).toMatchObject({
      started: false,
      error: { kind: 'refused', isUnitNameTaken: true },
    })
    expect(readdirSync(fake.environmentFolder)).toEqual([])
  })

  test('a start on a host that is going down does not count against the step', async () => {
    const fake = stepHost()
    fake.simulated.reboot()
    expect(await startStepUnit(fake.host, request)).toMatchObject({ started: false, error: { kind: 'stopping' } })
    expect(readdirSync(fake.environmentFolder)).toEqual([])
  })

  test('the environment of a step stays when the answer to its start is lost', async () => {
    const fake = stepHost()
    fake.answers('StartTransientUnit', 'lost-answer')
    expect(await startStepUnit(fake.host, request)).toMatchObject({ started: false, error: { kind: 'unknown' } })
    expect(readdirSync(fake.environmentFolder)).toEqual(['a1.env'])
  })

  test('a step is not requested without a bus', async () => {
    const fake = stepHost()
    fake.connection.close()
    expect(await startStepUnit(fake.host, request)).toMatchObject({ started: false, error: { kind: 'not-connected' } })
    expect(readdirSync(fake.environmentFolder)).toEqual([])
  })

  test('a start reports why files of the host cannot be written', async () => {
    const fake = stepHost()
    writeFileSync(join(fake.mount, 'run'), 'a file where a folder should be')
    expect(await startStepUnit(fake.host, request)).toMatchObject({
      started: false,
      error: { kind: 'host', message: expect.stringContaining('ENOTDIR') as string },
    })
    expect(fake.calls).toEqual([])
  })

  test('a start that cannot prepare the result leaves no secret behind', async () => {
    const fake = stepHost()
    writeFileSync(join(fake.mount, 'var'), 'a file where a folder should be')
    expect(await startStepUnit(fake.host, request)).toMatchObject({ started: false, error: { kind: 'host' } })
    expect(readdirSync(fake.environmentFolder)).toEqual([])
    expect(fake.calls).toEqual([])
  })
})

describe('a step', () => {
  test.each<[string, Partial<Unit>]>([
    ['queued', { activeState: 'inactive', job: 5 }],
    ['at work', { activeState: 'activating', subState: 'start', job: 5, invocationId: unitInvocationId }],
    [
      'whose recorder still writes',
      { activeState: 'deactivating', subState: 'stop-post', invocationId: unitInvocationId },
    ],
  ])('a step %s is running, even with a record', async (_, state) => {
    const fake = stepHost()
    fake.unit(state)
    fake.record()
    expect(await observeStepUnit(fake.host, step)).toEqual({ state: 'running' })
    expect(fake.calledMembers()).toContain('RefUnit')
  })

  const fromFile = {
    state: 'ended',
    source: 'file',
    result: { outcome: 'exited', code: 3 },
  }

  test('the record of a step that nobody watched shows how it ended', async () => {
    const fake = stepHost()
    fake.record()
    expect(await observeStepUnit(fake.host, { ...step, bootId: currentBootId })).toEqual(fromFile)
    expect(fake.calledMembers()).not.toContain('GetAll') // the cheap way
  })

  test('the observation shows that a shutdown stopped the step', async () => {
    const fake = stepHost()
    fake.record({ result: 'signal', code: 'killed', status: 'TERM', system: 'stopping' })
    expect(await observeStepUnit(fake.host, step)).toMatchObject({
      result: { outcome: 'killed', signal: 'SIGTERM' },
      isHostStopping: true,
    })
  })

  test.each([
    ['another boot', { boot: '00000000-1e8c-4755-b850-3daeeb4791a8' }],
    ['another attempt', { attempt: 'a2' }],
  ])('a record of %s does not show how the step ended', async (_, changes) => {
    const fake = stepHost()
    fake.record(changes)
    expect(await observeStepUnit(fake.host, { ...step, bootId: currentBootId })).toEqual({
      state: 'absent',
    })
  })

  test('a record of an earlier run than the loaded unit does not count', async () => {
    const fake = stepHost()
    fake.record({ invocation: 'b'.repeat(32) })
    fake.unit({
      activeState: 'failed',
      invocationId: unitInvocationId,
      result: 'signal',
      execMainCode: 2,
      execMainStatus: 9,
    })
    expect(await observeStepUnit(fake.host, step)).toEqual({
      state: 'ended',
      source: 'unit',
      result: { outcome: 'killed', signal: 'SIGKILL' },
    })
  })

  test('the unit of a step whose record could not be written shows how it ended', async () => {
    const fake = stepHost()
    fake.unit({
      activeState: 'inactive',
      invocationId: unitInvocationId,
      result: 'success',
      execMainCode: 1,
      execMainStatus: 0,
    })
    expect(await observeStepUnit(fake.host, step)).toMatchObject({
      state: 'ended',
      source: 'unit',
      result: { outcome: 'exited', code: 0 },
    })
  })

  test('a step without record and unit is absent, never a success', async () => {
    const fake = stepHost()
    expect(await observeStepUnit(fake.host, step)).toEqual({ state: 'absent' })
  })

  test('a step canceled before it ran counts as not started', async () => {
    const fake = stepHost()
    fake.unit({ activeState: 'inactive' })
    expect(await observeStepUnit(fake.host, step)).toMatchObject({
      state: 'ended',
      result: { outcome: 'failed-to-start', detail: 'the unit never ran (loaded)' },
    })
  })

  test('a record that appears between two reads is not lost', async () => {
    const fake = stepHost()
    const { root } = fake.host
    const firstRead = Promise.withResolvers<void>()
    const readText: HostRoot['readText'] = async (path) => await root.readText(path).finally(() => firstRead.resolve())
    fake.answers('Get', async () => {
      await firstRead.promise
      fake.record()
      return [new Variant('ay', Buffer.alloc(0))]
    })
    expect(await observeStepUnit({ ...fake.host, root: { ...root, readText } }, step)).toEqual(fromFile)
  })
})

describe('afterwards', () => {
  test('stopping a step asks systemd, and reports when there was nothing to stop', async () => {
    const fake = stepHost()
    fake.unit({ activeState: 'activating' })
    expect(await fake.host.units.stop(unitName)).toBe(true)
    fake.setUnit(unitName, undefined)
    expect(await fake.host.units.stop(unitName)).toBe(false)
  })

  test('forgetting a step removes unit, secrets and note, and leaves the record for the sweep', async () => {
    const fake = stepHost()
    await startStepUnit(fake.host, { ...request, note: 'where it writes' })
    expect(await readStepNote(fake.host, step.id)).toBe('where it writes')
    expect(statSync(join(fake.environmentFolder, 'a1.note')).mode & 0o777).toBe(0o600)
    fake.record()
    await forgetStepUnit(fake.host, step)
    expect(await readStepNote(fake.host, step.id)).toBeUndefined()
    expect(fake.calledMembers()).toEqual(expect.arrayContaining(['ResetFailedUnit', 'UnrefUnit']))
    expect(readdirSync(fake.environmentFolder)).toEqual([])
    await sweepStepFiles(fake.host, new Set(['a1']))
    expect(readdirSync(fake.results)).toEqual(['a1'])
    await sweepStepFiles(fake.host, new Set())
    expect(readdirSync(fake.results)).toEqual([])
  })

  test('the sweep spares files in use and files of others', async () => {
    const fake = stepHost()
    await sweepStepFiles(fake.host, new Set()) // a host where nothing ever ran
    mkdirSync(fake.environmentFolder, { recursive: true })
    for (const name of ['a1.env', 'a1.note', 'a2.env', 'a2.note', 'a1.env.0123.tmp', 'agent.sock'])
      writeFileSync(join(fake.environmentFolder, name), '')
    await sweepStepFiles(fake.host, new Set(['a1']))
    expect(readdirSync(fake.environmentFolder).toSorted()).toEqual(['a1.env', 'a1.note', 'agent.sock'])
  })

  test('an id that cannot be the name of a file is an error', async () => {
    const fake = stepHost()
    await expect(observeStepUnit(fake.host, { ...step, id: '../../etc/passwd' })).rejects.toThrow(
      'is not the id of an attempt',
    )
  })
})
