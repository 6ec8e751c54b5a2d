import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { startFakeSystemd } from '../../../test/support/fake-systemd.ts'
import { isShuttingDown, listInhibitors, reboot } from './reboot.ts'

async function startFakeLogin(
  inhibitors: readonly (readonly [what: string, who: string, why: string, mode: string])[] = [],
) {
  const systemd = await startFakeSystemd()
  systemd.bus.answers('ListInhibitors', {
    signature: 'a(ssssuu)',
    body: [inhibitors.map((inhibitor) => [...inhibitor, 0, 321])],
  })
  systemd.bus.answers('RebootWithFlags', {})
  systemd.bus.answers('Reboot', {})
  return systemd
}

const rebootCalls = (systemd: Awaited<ReturnType<typeof startFakeLogin>>) =>
  systemd.bus.calls.filter(({ member }) => member?.startsWith('Reboot')).map(({ member, body }) => [member, ...body])

describe('a reboot', () => {
  test('logind accepts a reboot', async () => {
    await using systemd = await startFakeLogin([
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
    await using systemd = await startFakeLogin([['idle:shutdown', 'apt', 'upgrade runs', mode]])
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'apt (pid 321) blocks it: upgrade runs',
    })
    expect(rebootCalls(systemd)).toEqual([])
  })

  test.each(['UnknownMethod', 'InvalidArgs'])(
    'a reboot is requested by the old method where the new one is unknown (%s)',
    async (error) => {
      await using systemd = await startFakeLogin()
      systemd.bus.answers('RebootWithFlags', { error: `org.freedesktop.DBus.Error.${error}` })
      expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
      expect(rebootCalls(systemd)).toEqual([
        ['RebootWithFlags', 1n],
        ['Reboot', false],
      ])
    },
  )

  test('a reboot already under way counts as accepted', async () => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('RebootWithFlags', { error: 'org.freedesktop.login1.OperationInProgress' })
    expect(await reboot(systemd.connection)).toEqual({ outcome: 'accepted' })
  })

  test('a reboot refused by logind carries the text of logind', async () => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('RebootWithFlags', { error: 'org.freedesktop.login1.BlockedByInhibitorLock', text: 'blocked' })
    expect(await reboot(systemd.connection)).toEqual({
      outcome: 'refused',
      reason: 'blocked (org.freedesktop.login1.BlockedByInhibitorLock)',
    })
  })

  test('a reboot is unknown when the bus ends before the answer, or logind stays silent', async () => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('RebootWithFlags', ({ client }) => {
      client.hangUp()
      return 'silent'
    })
    expect(await reboot(systemd.connection)).toMatchObject({ outcome: 'unknown' })
    systemd.bus.answers('RebootWithFlags', 'silent')
    expect(await reboot(systemd.connection, { timeoutMs: 20 })).toMatchObject({ outcome: 'unknown' })
    expect(rebootCalls(systemd)).toHaveLength(2) // each once: never again blindly
  })

  test('a reboot is not requested when logind cannot list inhibitors', async () => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('ListInhibitors', 'silent')
    expect(await reboot(systemd.connection, { timeoutMs: 20 })).toMatchObject({
      outcome: 'refused',
      reason: expect.stringContaining('cannot read the inhibitors') as string,
    })
    expect(rebootCalls(systemd)).toEqual([])
  })
})

describe('a shutdown', () => {
  test.each([
    [false, 'running', false],
    [true, 'running', true],
    [undefined, 'stopping', true],
    [undefined, 'degraded', false],
  ])('logind that says %s and systemd that says %s mean a shutdown: %s', async (isPreparing, state, expected) => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('Get', ({ message }) => {
      const [, property] = message.body as [string, string]
      if (property === 'SystemState') return { signature: 'v', body: [new Variant('s', state)] }
      return isPreparing === undefined
        ? { error: 'org.freedesktop.DBus.Error.ServiceUnknown' }
        : { signature: 'v', body: [new Variant('b', isPreparing)] }
    })
    expect(await isShuttingDown(systemd.connection)).toBe(expected)
  })

  test('a shutdown is unknown while systemd does not answer', async () => {
    await using systemd = await startFakeLogin()
    systemd.bus.answers('Get', 'silent')
    await expect(isShuttingDown(systemd.connection, { timeoutMs: 20 })).rejects.toThrow(/no reply|20 ms/i)
  })
})
