import { beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import {
  confirmRestart,
  restartService,
  type RestartOutcome,
  type RestartRequest,
} from '../../src/host/systemd/service-restart.ts'
import { hasBus } from '../sandbox/host-os.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const services: Readonly<Record<string, string>> = {
  good: '[Service]\nExecStart=/bin/sleep infinity\n',
  dies: '[Service]\nExecStart=/bin/sh -c "exit 7"\n',
  'dies-later': '[Service]\nExecStart=/bin/sleep 0.15\n',
  loops: '[Service]\nRestart=always\nExecStart=/bin/sh -c "exit 7"\n[Unit]\nStartLimitIntervalSec=0\n',
  limited: '[Service]\nExecStart=/bin/false\n[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=600\n',
  badpath: '[Service]\nType=exec\nExecStart=/no/such/program\n',
  silent: '[Service]\nType=notify\nTimeoutStartSec=300ms\nExecStart=/bin/sleep infinity\n',
  conditional: '[Unit]\nConditionPathExists=/run/wanted\n[Service]\nExecStart=/bin/sleep infinity\n',
  once: '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo once >>/run/once"\n',
  'once-badly': '[Service]\nType=oneshot\nExecStart=/bin/false\n',
  asserted: '[Unit]\nAssertPathExists=/no/such/file\n[Service]\nExecStart=/bin/sleep infinity\n',
  dependent: '[Unit]\nRequires=badpath.service\nAfter=badpath.service\n[Service]\nExecStart=/bin/sleep infinity\n',
  manual: '[Unit]\nRefuseManualStart=yes\n[Service]\nExecStart=/bin/sleep infinity\n',
  bad: '[Service]\nType=simple\n',
}

const { host, agent } = useHost()
beforeAll(async () => {
  for (const [name, content] of Object.entries(services))
    await host.root.writeFile(`/etc/systemd/system/${name}.service`, content, 0o644)
  await host.exec('ln', '-s', '/dev/null', '/etc/systemd/system/masked.service')
  await agent.units.reload()
})

const invocation = async (unit: string) => (await agent.units.readState(unit)).invocationId ?? ''
const restart = async (unit: string, timeoutMs = 10_000): Promise<RestartOutcome> =>
  await restartService({ ...requestOf(unit, await invocation(unit)), timeoutMs })
const requestOf = (unit: string, previousInvocation: string): RestartRequest => ({
  units: agent.units,
  clock: systemClock,
  unit,
  previousInvocation,
})

describe('a service of the host', () => {
  const logind = hasBus ? ['systemd-logind.service'] : []
  test.each(['good.service', 'cron.service', ...logind, 'systemd-journald.service'])(
    'a restart of %s gives it a new invocation',
    async (unit) => {
      const before = await invocation(unit)
      const outcome = await restart(unit)
      expect(outcome).toEqual({ outcome: 'restarted', invocationId: await invocation(unit) })
      expect(outcome).not.toMatchObject({ invocationId: before })
    },
  )

  test('a service can be restarted by several callers at once', async () => {
    const before = await invocation('good.service')
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => restartService(requestOf('good.service', before))))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'restarted' })
  })

  test.each<[string, string, string | RegExp]>([
    ['dies', 'not-active', 'failed/failed (exit-code, exited 7)'],
    ['dies-later', 'not-active', hasBus ? 'inactive/dead (success, exited 0)' : 'inactive/dead (success)'],
    // it runs for a moment each time: seen just then, systemd counts that it has started it again
    ['loops', 'not-active', /auto-restart|restarted by itself \d+ times?/],
    ['badpath', 'job-failed', 'job failed (exit-code, exited 203)'],
    ['silent', 'job-failed', 'job failed (timeout, killed TERM)'],
    ['once-badly', 'job-failed', 'job failed (exit-code, exited 1)'],
    ['asserted', 'job-failed', 'job assert'],
    ['dependent', 'job-failed', 'job dependency'],
    ['no-such', 'no-such-unit', 'not found'],
    ['masked', 'masked', 'masked'],
    ['bad', 'bad-unit', 'bad unit file setting'],
    ['manual', 'refused', 'OnlyByDependency'],
  ])('the restart of the service %s fails with its reason', async (name, reason, detail) => {
    expect(await restart(`${name}.service`)).toMatchObject({
      outcome: 'failed',
      reason,
      detail: (typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail)) as string,
    })
  })

  test('a service that exits by itself can be restarted again and again', async () => {
    for (const times of [1, 2, 3]) {
      expect(await restart('once.service')).toMatchObject({ outcome: hasBus ? 'restarted' : 'not-needed' })
      expect((await host.root.readFile('/run/once')).toString()).toBe('once\n'.repeat(times))
    }
  })

  // without references systemd forgets why a unit that nobody needs was not started
  test.runIf(hasBus)(
    'a service whose condition never held needs no restart, and one whose condition no longer holds fails',
    async () => {
      expect(await restart('conditional.service')).toMatchObject({ outcome: 'not-needed' })
      await host.exec('touch', '/run/wanted')
      expect(await restart('conditional.service')).toMatchObject({ outcome: 'restarted' })
      await host.exec('rm', '/run/wanted')
      const conditions = expect.stringContaining('one of its conditions does not hold') as string
      expect(await restart('conditional.service')).toMatchObject({
        outcome: 'failed',
        reason: 'condition',
        detail: conditions,
      })
    },
  )

  test('a restart ignores the start limit of a service that failed too often', async () => {
    for (let turn = 0; turn < 4; turn++)
      expect(await restart('limited.service')).toMatchObject({
        outcome: 'failed',
        reason: 'not-active',
        detail: expect.stringContaining('exited 1') as string,
      })
  })

  test.runIf(hasBus)('the restart of the bus loses its own answer and is confirmed by the new invocation', async () => {
    const before = await invocation('dbus.service')
    expect(await restart('dbus.service')).toMatchObject({ outcome: 'unknown' })
    const outcome = await confirmRestart(requestOf('dbus.service', before))
    expect(outcome).toEqual({ outcome: 'restarted', invocationId: await invocation('dbus.service') })
    expect(await confirmRestart(requestOf('cron.service', await invocation('cron.service')))).toMatchObject({
      outcome: 'not-requested',
    })
  })
})
