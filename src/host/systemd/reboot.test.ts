import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import { BusError } from '../dbus/errors.ts'
import { isShuttingDown, listInhibitors, reboot } from './reboot.ts'

const rebootCalls = (systemd: SystemdConnection) =>
  systemd.calls.filter(({ member }) => member.startsWith('Reboot')).map(({ member, body }) => [member, ...body])

describe('a reboot', () => {
  test('logind accepts a reboot', async () => {
    const systemd = connectSystemd()
    systemd.simulated.logind.setInhibitors([
      { what: 'shutdown:sleep', who: 'kubelet', why: 'pods first', mode: 'delay' },
      { what: 'sleep', who: 'backup', why: 'runs' },
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
    const systemd = connectSystemd()
    systemd.simulated.logind.setInhibitors([{ what: 'idle:shutdown', who: 'apt', why: 'upgrade runs', mode }])
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'apt (pid 321) blocks it: upgrade runs',
    })
    expect(rebootCalls(systemd)).toEqual([])
  })

  test.each(['UnknownMethod', 'InvalidArgs'])(
    'a reboot is requested by the old method where the new one is unknown (%s)',
    async (error) => {
      const systemd = connectSystemd()
      systemd.refuses('RebootWithFlags', `org.freedesktop.DBus.Error.${error}`)
      expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
      expect(rebootCalls(systemd)).toEqual([
        ['RebootWithFlags', 1n],
        ['Reboot', false],
      ])
    },
  )

  test('a reboot already under way counts as accepted', async () => {
    const systemd = connectSystemd()
    systemd.simulated.reboot()
    expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
  })

  test.each(['DBus.Error.ServiceUnknown', 'DBus.Error.NameHasNoOwner', 'systemd1.NoSuchUnit', 'systemd1.UnitMasked'])(
    'systemd makes the reboot where logind is absent (%s)',
    async (error) => {
      const systemd = connectSystemd()
      systemd.refuses('ListInhibitors', `org.freedesktop.${error}`)
      systemd.answers('StartUnit', ['/job/7'])
      expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
      const starts = systemd.calls.filter(({ member }) => member === 'StartUnit')
      expect(starts.map(({ body }) => body)).toEqual([['reboot.target', 'replace-irreversibly']])
    },
  )

  test('a reboot is refused while logind runs without the bus', async () => {
    const systemd = connectSystemd()
    systemd.refuses('ListInhibitors', 'org.freedesktop.DBus.Error.ServiceUnknown')
    systemd.setUnit('systemd-logind.service', { activeState: 'active' })
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'cannot read the inhibitors: logind runs, and is not on the system bus',
    })
  })

  test('a reboot refused by logind carries the text of logind', async () => {
    const systemd = connectSystemd()
    systemd.simulated.logind.setFate('refused')
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'Operation inhibited (org.freedesktop.login1.BlockedByInhibitorLock)',
    })
  })

  test('a reboot is unknown when the bus ends before the answer, or logind stays silent', async () => {
    const systemd = connectSystemd()
    systemd.answers('RebootWithFlags', 'lost-answer')
    expect(await reboot(systemd.connection)).toMatchObject({ outcome: 'unknown' })
    systemd.answers('RebootWithFlags', 'silent')
    expect(await systemd.settled(reboot(systemd.connection, { timeoutMs: 20 }), 100)).toMatchObject({
      outcome: 'unknown',
    })
    expect(rebootCalls(systemd)).toHaveLength(2) // each once: never again blindly
  })

  test.each<[string, (systemd: SystemdConnection) => void]>([
    ['silence', (systemd) => systemd.answers('ListInhibitors', 'silent')],
    ['a timeout', (systemd) => systemd.refuses('ListInhibitors', 'org.freedesktop.DBus.Error.TimedOut')],
  ])(
    'a reboot is not requested when logind lists no inhibitors, and the refusal says what helps (%s)',
    async (_, fail) => {
      const systemd = connectSystemd()
      fail(systemd)
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
    const systemd = connectSystemd()
    systemd.answers('Get', ({ body }) => {
      const [, property] = body as [string, string]
      if (property === 'SystemState') return [new Variant('s', state)]
      if (isPreparing === undefined) throw new BusError('org.freedesktop.DBus.Error.ServiceUnknown', '')
      return [new Variant('b', isPreparing)]
    })
    expect(await isShuttingDown(systemd.connection)).toBe(expected)
  })

  test('a shutdown is unknown while systemd does not answer', async () => {
    const systemd = connectSystemd()
    systemd.answers('Get', 'silent')
    await expect(systemd.settled(isShuttingDown(systemd.connection, { timeoutMs: 20 }), 20)).rejects.toThrow(
      /no reply|20 ms/i,
    )
  })
})
