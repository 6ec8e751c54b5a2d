import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { createScriptedSystemd, type ScriptedSystemd } from '../../../test/kit/bus/scripted-systemd.ts'
import { isShuttingDown, listInhibitors, reboot } from './reboot.ts'

function createLogin(inhibitors: readonly (readonly [what: string, who: string, why: string, mode: string])[] = []) {
  const systemd = createScriptedSystemd()
  systemd.answers('ListInhibitors', {
    signature: 'a(ssssuu)',
    body: [inhibitors.map((inhibitor) => [...inhibitor, 0, 321])],
  })
  systemd.answers('RebootWithFlags', {})
  systemd.answers('Reboot', {})
  return systemd
}

const rebootCalls = (systemd: ScriptedSystemd) =>
  systemd.calls.filter(({ member }) => member.startsWith('Reboot')).map(({ member, body }) => [member, ...body])

describe('a reboot', () => {
  test('logind accepts a reboot', async () => {
    const systemd = createLogin([
      ['shutdown:sleep', 'kubelet', 'pods first', 'delay'],
      ['sleep', 'backup', 'runs', 'block'],
    ])
    expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
    expect(rebootCalls(systemd)).toEqual([['RebootWithFlags', 1n]])
    expect(await listInhibitors(systemd.connection)).toContainEqual({
      what: ['shutdown', 'sleep'],
      who: 'kubelet',
      why: 'pods first',
      mode: 'delay',
      uid: 0,
      pid: 321,
    })
  })

  test.each(['block', 'block-weak'])('a reboot is not requested while an inhibitor blocks it (%s)', async (mode) => {
    const systemd = createLogin([['idle:shutdown', 'apt', 'upgrade runs', mode]])
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'apt (pid 321) blocks it: upgrade runs',
    })
    expect(rebootCalls(systemd)).toEqual([])
  })

  test.each(['UnknownMethod', 'InvalidArgs'])(
    'a reboot is requested by the old method where the new one is unknown (%s)',
    async (error) => {
      const systemd = createLogin()
      systemd.answers('RebootWithFlags', { error: `org.freedesktop.DBus.Error.${error}` })
      expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
      expect(rebootCalls(systemd)).toEqual([
        ['RebootWithFlags', 1n],
        ['Reboot', false],
      ])
    },
  )

  test('a reboot already under way counts as accepted', async () => {
    const systemd = createLogin()
    systemd.answers('RebootWithFlags', { error: 'org.freedesktop.login1.OperationInProgress' })
    expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
  })

  test.each(['DBus.Error.ServiceUnknown', 'DBus.Error.NameHasNoOwner', 'systemd1.NoSuchUnit', 'systemd1.UnitMasked'])(
    'systemd makes the reboot where logind is absent (%s)',
    async (error) => {
      const systemd = createScriptedSystemd()
      systemd.answers('ListInhibitors', { error: `org.freedesktop.${error}` })
      systemd.answers('StartUnit', { signature: 'o', body: ['/org/freedesktop/systemd1/job/7'] })
      expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
      const starts = systemd.calls.filter(({ member }) => member === 'StartUnit')
      expect(starts.map(({ body }) => body)).toEqual([['reboot.target', 'replace-irreversibly']])
    },
  )

  test('a reboot is refused while logind runs without the bus', async () => {
    const systemd = createScriptedSystemd()
    systemd.answers('ListInhibitors', { error: 'org.freedesktop.DBus.Error.ServiceUnknown' })
    systemd.hostUnits.set('systemd-logind.service', { activeState: 'active' })
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'cannot read the inhibitors: logind runs, and is not on the system bus',
    })
  })

  test('a reboot refused by logind carries the text of logind', async () => {
    const systemd = createLogin()
    systemd.answers('RebootWithFlags', { error: 'org.freedesktop.login1.BlockedByInhibitorLock', text: 'blocked' })
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'blocked (org.freedesktop.login1.BlockedByInhibitorLock)',
    })
  })

  test('a reboot is unknown when the bus ends before the answer, or logind stays silent', async () => {
    const systemd = createLogin()
    systemd.answers('RebootWithFlags', 'lost-answer')
    expect(await reboot(systemd.connection)).toMatchObject({ outcome: 'unknown' })
    systemd.answers('RebootWithFlags', 'silent')
    expect(await systemd.settled(reboot(systemd.connection, { timeoutMs: 20 }), 100)).toMatchObject({
      outcome: 'unknown',
    })
    expect(rebootCalls(systemd)).toHaveLength(2) // each once: never again blindly
  })

  test.each(['silent', { error: 'org.freedesktop.DBus.Error.TimedOut' }] as const)(
    'a reboot is not requested when logind does not list inhibitors, and the refusal says what helps (%j)',
    async (answer) => {
      const systemd = createLogin()
      systemd.answers('ListInhibitors', answer)
      expect(await systemd.settled(reboot(systemd.connection, { timeoutMs: 20 }), 100)).toMatchObject({
        outcome: 'refused',
        reason: expect.stringMatching(
          /^cannot read the inhibitors: logind does not answer\. .* restart systemd-logind\.service \(/,
        ) as string,
      })
      expect(rebootCalls(systemd)).toEqual([])
    },
  )
})

describe('a shutdown', () => {
  test.each([
    [false, 'running', false],
    [true, 'running', true],
    [undefined, 'stopping', true],
    [undefined, 'degraded', false],
  ])('logind that says %s and systemd that says %s mean a shutdown: %s', async (isPreparing, state, expected) => {
    const systemd = createLogin()
    systemd.answers('Get', ({ body }) => {
      const [, property] = body as [string, string]
      if (property === 'SystemState') return { signature: 'v', body: [new Variant('s', state)] }
      return isPreparing === undefined
        ? { error: 'org.freedesktop.DBus.Error.ServiceUnknown' }
        : { signature: 'v', body: [new Variant('b', isPreparing)] }
    })
    expect(await isShuttingDown(systemd.connection)).toBe(expected)
  })

  test('a shutdown is unknown while systemd does not answer', async () => {
    const systemd = createLogin()
    systemd.answers('Get', 'silent')
    await expect(systemd.settled(isShuttingDown(systemd.connection, { timeoutMs: 20 }), 20)).rejects.toThrow(
      /no reply|20 ms/i,
    )
  })
})
