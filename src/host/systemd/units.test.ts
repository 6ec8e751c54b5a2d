import { describe, expect, test } from 'vitest'
import { startFakeSystemd } from '../../../test/support/fake-systemd.ts'
import { flag, text } from './unit-properties.ts'
import { isLive } from './unit-state.ts'

const properties = [
  text('Type', 'oneshot'),
  { ...text('CollectMode', 'inactive'), optional: true as const },
  flag('AddRef', true),
]
const unitInvocationId = 'c937d30dc04618bcca73153f83757c00'

describe('starting a transient unit', () => {
  test('starting a transient unit returns its job', async () => {
    await using systemd = await startFakeSystemd()
    expect(await systemd.units.startTransient('a.service', properties)).toEqual({ outcome: 'started', job: '/job/1' })
  })

  test('starting a unit leaves out optional properties that systemd does not know', async () => {
    await using systemd = await startFakeSystemd()
    const sent: string[][] = []
    systemd.bus.answers('StartTransientUnit', ({ message }) => {
      const names = (message.body[2] as [string, unknown][]).map(([name]) => name)
      sent.push(names)
      if (!names.includes('CollectMode')) return { signature: 'o', body: ['/job/2'] }
      return {
        error: 'org.freedesktop.DBus.Error.PropertyReadOnly',
        text: 'Cannot set property CollectMode, or unknown property.',
      }
    })
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject({ outcome: 'started' })
    expect(sent).toEqual([
      ['Type', 'CollectMode', 'AddRef'],
      ['Type', 'AddRef'],
    ])
  })

  test('starting a unit is refused when systemd does not know a required property', async () => {
    await using systemd = await startFakeSystemd()
    const error = 'org.freedesktop.DBus.Error.PropertyReadOnly'
    systemd.bus.answers('StartTransientUnit', { error, text: 'Cannot set property AddRef, or unknown property.' })
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject({
      outcome: 'refused',
      error,
      isUnitNameTaken: false,
    })
    expect(systemd.bus.calledMembers().filter((member) => member === 'StartTransientUnit')).toHaveLength(1)
  })

  test.each([
    ['org.freedesktop.systemd1.UnitExists', { outcome: 'exists' }],
    ['org.freedesktop.systemd1.BadUnitSetting', { outcome: 'refused', isUnitNameTaken: true }],
    ['org.freedesktop.DBus.Error.InvalidArgs', { outcome: 'refused', isUnitNameTaken: false }],
    ['org.freedesktop.DBus.Error.NoReply', { outcome: 'unknown' }],
  ])('the answer %s decides the outcome of a start', async (error, outcome) => {
    await using systemd = await startFakeSystemd()
    systemd.bus.answers('StartTransientUnit', { error, text: 'words' })
    expect(await systemd.units.startTransient('a.service', properties)).toMatchObject(outcome)
  })

  test('a start without an answer is unknown', async () => {
    await using systemd = await startFakeSystemd()
    systemd.bus.answers('StartTransientUnit', 'silent')
    expect(await systemd.units.startTransient('a.service', properties, { timeoutMs: 20 })).toMatchObject({
      outcome: 'unknown',
    })
    systemd.bus.answers('StartTransientUnit', ({ client }) => {
      client.hangUp()
      return 'silent'
    })
    expect(await systemd.units.startTransient('b.service', properties)).toMatchObject({ outcome: 'unknown' })
  })

  test('starting a unit requires a valid unit name', async () => {
    await using systemd = await startFakeSystemd()
    await expect(systemd.units.startTransient('a/b.service', properties)).rejects.toThrow('is not a unit name')
  })
})

test.each([
  ['245.4-4ubuntu3.24', 245],
  ['v254', 254],
  ['252', 252],
])('systemd that says %s has the version %d', async (text, version) => {
  await using systemd = await startFakeSystemd()
  systemd.setVersion(text)
  expect(await systemd.units.version()).toBe(version)
})

test('a version without a number is an error', async () => {
  await using systemd = await startFakeSystemd()
  systemd.setVersion('unknown')
  await expect(systemd.units.version()).rejects.toThrow('systemd names the version "unknown", without a number')
})

describe('the state of a unit', () => {
  test('the snapshot of a missing unit is not taken for success', async () => {
    await using systemd = await startFakeSystemd()
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
    await using systemd = await startFakeSystemd()
    systemd.hostUnits.set('a.service', {
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
  test('ends of jobs are believed from systemd only', async () => {
    await using systemd = await startFakeSystemd()
    const received: unknown[] = []
    systemd.units.onJobEnd((job) => received.push(job))
    await systemd.units.readState('a.service')
    systemd.jobRemoved('a.service', 'failed', '/job/7', ':1.666') // any local user can send this
    systemd.jobRemoved('a.service', 'done', '/job/8')
    await expect.poll(() => received).toEqual([{ unit: 'a.service', job: '/job/8', result: 'done' }])
  })

  test('ends of jobs continue after systemd took another bus name, and the interruption is reported', async () => {
    await using systemd = await startFakeSystemd()
    const received: string[] = []
    systemd.units.onJobEnd(({ result }) => received.push(result))
    systemd.units.onInterrupted((why) => received.push(why))
    await systemd.units.readState('a.service')
    const change = {
      type: 4,
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      member: 'NameOwnerChanged',
      signature: 'sss',
    }
    const [client] = systemd.bus.clients
    client?.send({ ...change, sender: ':1.666', body: ['org.freedesktop.systemd1', ':1.1', ':1.666'] })
    client?.send({ ...change, sender: 'org.freedesktop.DBus', body: ['org.freedesktop.systemd1', ':1.1', ':1.5'] })
    systemd.jobRemoved('a.service', 'old', '/job/1', ':1.1')
    systemd.jobRemoved('a.service', 'forged', '/job/1', ':1.666')
    systemd.jobRemoved('a.service', 'new', '/job/1', ':1.5')
    await expect.poll(() => received).toEqual(['systemd left the bus', 'new'])
  })

  test('the end of the connection is reported as an interruption', async () => {
    await using systemd = await startFakeSystemd()
    const received: string[] = []
    systemd.units.onInterrupted((why) => received.push(why))
    await systemd.units.readState('a.service')
    systemd.bus.hangUpAll()
    await expect.poll(() => received).toEqual(['the bus closed the connection'])
  })
})

describe('references', () => {
  test('a reference requested before the connection exists is taken once', async () => {
    await using systemd = await startFakeSystemd()
    await Promise.all([systemd.units.ref('a.service'), systemd.units.ref('a.service')])
    expect(systemd.bus.calledMembers().filter((member) => member === 'RefUnit')).toHaveLength(1)
  })

  test('a reference is taken once and renewed on every connection', async () => {
    await using systemd = await startFakeSystemd()
    await systemd.units.startTransient('started.service', properties) // with AddRef
    await systemd.units.ref('started.service')
    await systemd.units.ref('found.service')
    await systemd.units.ref('found.service')
    await systemd.units.ref('done.service')
    await systemd.units.unref('done.service')
    const refs = () => systemd.bus.calls.filter(({ member }) => member === 'RefUnit').map(({ body }) => body[0])
    expect(refs()).toEqual(['found.service', 'done.service'])
    systemd.bus.hangUpAll()
    await expect.poll(refs).toEqual(['found.service', 'done.service', 'started.service', 'found.service'])
  })

  test.each(['ref', 'unref', 'resetFailed', 'stop'] as const)('%s reports that the unit is gone', async (method) => {
    await using systemd = await startFakeSystemd()
    for (const member of ['RefUnit', 'UnrefUnit', 'ResetFailedUnit', 'StopUnit'])
      systemd.bus.answers(member, { error: 'org.freedesktop.systemd1.NoSuchUnit' })
    expect(await systemd.units[method]('gone.service')).toBe(false)
  })
})
