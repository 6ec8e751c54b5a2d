import { describe, expect, test } from 'vitest'
import { connectSystemd } from '../../../test/kit/host/systemd-connection.ts'
import { BusError } from '../dbus/errors.ts'
import { command, flag, text } from './unit-properties.ts'
import { isLive } from './unit-state.ts'

const properties = [
  text('Type', 'oneshot'),
  { ...text('CollectMode', 'inactive'), optional: true as const },
  flag('AddRef', true),
  command('ExecStart', ['/bin/true']),
]
const unitInvocationId = 'c937d30dc04618bcca73153f83757c00'

describe('starting a transient unit', () => {
  test('starting a transient unit returns its job', async () => {
    const systemd = connectSystemd()
    expect(await systemd.units.startTransient('a.service', properties)).toEqual({
      outcome: 'started',
      job: '/org/freedesktop/systemd1/job/1',
    })
  })

  test('starting a unit leaves out optional properties that systemd does not know', async () => {
    const systemd = connectSystemd()
    const sent: string[][] = []
    systemd.answers('StartTransientUnit', ({ body }, carryOut) => {
      const names = (body[2] as [string, unknown][]).map(([name]) => name)
      sent.push(names)
      if (!names.includes('CollectMode')) return carryOut()
      const text = 'Cannot set property CollectMode, or unknown property.'
      throw new BusError('org.freedesktop.DBus.Error.PropertyReadOnly', text)
    })
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject({ outcome: 'started' })
    expect(sent).toEqual([
      ['Type', 'CollectMode', 'AddRef', 'ExecStart'],
      ['Type', 'AddRef', 'ExecStart'],
    ])
  })

  test('starting a unit is refused when systemd does not know a required property', async () => {
    const systemd = connectSystemd()
    const error = 'org.freedesktop.DBus.Error.PropertyReadOnly'
    systemd.refuses('StartTransientUnit', error, 'Cannot set property AddRef, or unknown property.')
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject({
      outcome: 'refused',
      error,
      isUnitNameTaken: false,
    })
    expect(systemd.calledMembers().filter((member) => member === 'StartTransientUnit')).toHaveLength(1)
  })

  test.each([
    ['org.freedesktop.systemd1.UnitExists', { outcome: 'exists' }],
    ['org.freedesktop.systemd1.BadUnitSetting', { outcome: 'refused', isUnitNameTaken: true }],
    ['org.freedesktop.DBus.Error.InvalidArgs', { outcome: 'refused', isUnitNameTaken: false }],
    ['org.freedesktop.DBus.Error.NoReply', { outcome: 'unknown' }],
  ])('the answer %s decides the outcome of a start', async (error, outcome) => {
    const systemd = connectSystemd()
    systemd.refuses('StartTransientUnit', error, 'words')
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject(outcome)
  })

  test('a start without an answer is unknown', async () => {
    const systemd = connectSystemd()
    systemd.answers('StartTransientUnit', 'silent')
    const silent = systemd.units.startTransient('a.service', properties, { timeoutMs: 20 })
    expect(await systemd.settled(silent, 20)).toMatchObject({ outcome: 'unknown' })
    systemd.answers('StartTransientUnit', 'lost-answer')
    expect(await systemd.units.startTransient('b.service', properties)).toMatchObject({ outcome: 'unknown' })
  })

  test('starting a unit requires a valid unit name', async () => {
    const systemd = connectSystemd()
    await expect(systemd.units.startTransient('a/b.service', properties)).rejects.toThrow('is not a unit name')
  })
})

test.each([
  ['245.4-4ubuntu3.24', 245],
  ['v254', 254],
  ['252', 252],
])('systemd that says %s has the version %d', async (text, version) => {
  const systemd = connectSystemd()
  systemd.setVersion(text)
  expect(await systemd.units.version()).toBe(version)
})

test('a version without a number is an error', async () => {
  const systemd = connectSystemd()
  systemd.setVersion('unknown')
  await expect(systemd.units.version()).rejects.toThrow('systemd names the version "unknown", without a number')
})

describe('the state of a unit', () => {
  test('the snapshot of a missing unit is not taken for success', async () => {
    const systemd = connectSystemd()
    expect(await systemd.units.readState('gone.service')).toEqual({
      loadState: 'not-found',
      activeState: 'inactive',
      subState: 'dead',
      isJobPending: false,
    })
    expect(await systemd.units.readSnapshot('gone.service')).toMatchObject({
      loadState: 'not-found',
      result: 'success',
    })
  })

  test('the state of a unit includes its invocation', async () => {
    const systemd = connectSystemd()
    systemd.setUnit('a.service', {
      activeState: 'failed',
      subState: 'failed',
      invocationId: unitInvocationId,
      result: 'exit-code',
      execMainCode: 1,
      execMainStatus: 3,
    })
    expect(await systemd.units.readState('a.service')).toMatchObject({
      loadState: 'loaded',
      activeState: 'failed',
      invocationId: unitInvocationId,
    })
    expect(await systemd.units.readSnapshot('a.service')).toMatchObject({
      result: 'exit-code',
      execMainCode: 1,
      execMainStatus: 3,
      invocationId: unitInvocationId,
    })
  })

  test.each([
    ['inactive', true, true], // just queued
    ['inactive', false, false],
    ['failed', false, false],
    ['activating', true, true],
    ['deactivating', false, true], // its recorder still runs
    ['active', false, true],
  ])('%s with a job %s is live: %s', (activeState, isJobPending, live) => {
    expect(isLive({ loadState: 'loaded', activeState, subState: '', isJobPending })).toBe(live)
  })
})

describe('news of jobs', () => {
  test('the end of a job is reported', async () => {
    const systemd = connectSystemd()
    const received: unknown[] = []
    systemd.units.onJobEnd((job) => received.push(job))
    await systemd.units.readState('a.service')
    systemd.jobRemoved('a.service', 'done', '/job/8')
    await systemd.clock.advance(0)
    expect(received).toEqual([{ unit: 'a.service', job: '/job/8', result: 'done' }])
  })

  test('the end of the connection is reported as an interruption', async () => {
    const systemd = connectSystemd()
    const received: string[] = []
    systemd.units.onInterrupted((why) => received.push(why))
    await systemd.units.readState('a.service')
    systemd.hangUp()
    await systemd.clock.advance(0)
    expect(received).toEqual(['the bus closed the connection'])
  })
})

describe('references', () => {
  test('a reference requested before the connection exists is taken once', async () => {
    const systemd = connectSystemd()
    systemd.setUnit('a.service', {})
    await Promise.all([systemd.units.ref('a.service'), systemd.units.ref('a.service')])
    expect(systemd.calledMembers().filter((member) => member === 'RefUnit')).toHaveLength(1)
  })

  test('a reference is taken once and renewed on every connection', async () => {
    const systemd = connectSystemd()
    for (const name of ['found.service', 'done.service']) systemd.setUnit(name, {})
    await systemd.units.startTransient('started.service', properties) // with AddRef
    await systemd.units.ref('started.service')
    await systemd.units.ref('found.service')
    await systemd.units.ref('found.service')
    await systemd.units.ref('done.service')
    await systemd.units.unref('done.service')
    await systemd.units.ref('gone.service')
    const refs = () => systemd.calls.filter(({ member }) => member === 'RefUnit').map(({ body }) => body[0])
    const before = ['found.service', 'done.service', 'gone.service']
    expect(refs()).toEqual(before)
    systemd.hangUp()
    await systemd.clock.advance(100)
    expect(refs()).toEqual([...before, 'started.service', 'found.service'])
  })

  test.each(['ref', 'unref', 'resetFailed', 'stop'] as const)('%s reports that the unit is gone', async (method) => {
    const systemd = connectSystemd()
    expect(await systemd.units[method]('gone.service')).toBe(false)
  })
})
