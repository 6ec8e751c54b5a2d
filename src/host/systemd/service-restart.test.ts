import { describe, expect, test } from 'vitest'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import type { Unit } from '../../../test/kit/host/unit.ts'
import { sleep } from '../../schemas/clock.ts'
import { confirmRestart, type RestartRequest, restartService } from './service-restart.ts'

const previousInvocation = 'a'.repeat(32)
const nextInvocation = 'b'.repeat(32)
const unitName = 'kubelet.service'
const requestOf = ({ units, clock }: SystemdConnection): RestartRequest => ({
  units,
  clock,
  unit: unitName,
  previousInvocation,
  settleMs: 20,
  timeoutMs: 1000,
})

/** A systemd whose kubelet runs; a restart makes it `then`, and its job ends so, before or after the answer. */
function runningService(
  then: Partial<Unit> = { activeState: 'active', invocationId: nextInvocation },
  job = 'done',
  order: 'signal first' | 'answer first' = 'answer first',
): SystemdConnection {
  const systemd = connectSystemd()
  systemd.setUnit(unitName, { activeState: 'active', invocationId: previousInvocation })
  systemd.answers('RestartUnit', () => {
    systemd.setUnit(unitName, then)
    systemd.jobRemoved('other.service', 'failed', '/job/3')
    systemd.jobRemoved(unitName, 'canceled', '/job/4') // somebody else's job
    systemd.jobRemoved('the-real-name-of-kubelet.service', job, '/job/5')
    return order === 'answer first' ? ['/job/5'] : sleep(systemd.clock, 10).then(() => ['/job/5'])
  })
  return systemd
}

/** The outcome, within two seconds. */
const restart = async (systemd: SystemdConnection, changes: Partial<RestartRequest> = {}) =>
  await systemd.settled(restartService({ ...requestOf(systemd), ...changes }), 2_000)

describe('a service', () => {
  test.each(['signal first', 'answer first'] as const)(
    'a service is restarted when it runs as a new invocation and stays up, %s',
    async (order) => {
      const systemd = runningService(undefined, 'done', order)
      expect(await restart(systemd)).toEqual({
        outcome: 'restarted',
        invocationId: nextInvocation,
      })
      expect(systemd.calledMembers().slice(0, 4)).toEqual(['Subscribe', 'ResetFailedUnit', 'RefUnit', 'RestartUnit'])
    },
  )

  test('a service that ends, and of which systemd keeps nothing, needs no more than its job', async () => {
    expect(await restart(runningService({ activeState: 'inactive', isOneshot: true }))).toMatchObject({
      outcome: 'not-needed',
    })
    expect(await restart(runningService({ activeState: 'inactive' }))).toMatchObject({ reason: 'not-active' })
    expect(await restart(runningService({ activeState: 'inactive', isOneshot: true }, 'failed'))).toMatchObject({
      reason: 'job-failed',
    })
  })

  test.each<[string, Partial<Unit>, string, { reason: string; detail: string }]>([
    [
      'whose job failed',
      { activeState: 'failed', result: 'exit-code', execMainCode: 1, execMainStatus: 203 },
      'failed',
      { reason: 'job-failed', detail: 'job failed (exit-code, exited 203)' },
    ],
    [
      'whose dependency failed',
      { activeState: 'inactive' },
      'dependency',
      { reason: 'job-failed', detail: 'job dependency' },
    ],
    [
      'that died at once',
      { activeState: 'failed', subState: 'failed', result: 'signal', execMainCode: 2, execMainStatus: 9 },
      'done',
      { reason: 'not-active', detail: 'failed/failed (signal, killed KILL' },
    ],
    [
      'that restarts itself over and over',
      { activeState: 'activating', subState: 'auto-restart', result: 'exit-code', nRestarts: 2 },
      'done',
      { reason: 'not-active', detail: 'restarted by itself 2 times' },
    ],
    [
      'that has restarted itself',
      { activeState: 'activating', subState: 'auto-restart', result: 'exit-code', nRestarts: 1 },
      'done',
      { reason: 'not-active', detail: 'restarted by itself 1 time)' },
    ],
    [
      'whose condition does not hold',
      { activeState: 'inactive', conditionResult: false },
      'done',
      { reason: 'condition', detail: 'conditions' },
    ],
    [
      'that ends by itself, and badly',
      {
        activeState: 'inactive',
        isOneshot: true,
        result: 'exit-code',
        execMainCode: 1,
        execMainStatus: 3,
        invocationId: nextInvocation,
      },
      'done',
      { reason: 'not-active', detail: 'exited 3' },
    ],
    [
      'that ends by itself, and is as it was',
      { activeState: 'inactive', isOneshot: true, result: 'success', invocationId: previousInvocation },
      'done',
      { reason: 'not-active', detail: 'inactive' },
    ],
    [
      'that runs as before',
      { activeState: 'active', invocationId: previousInvocation },
      'done',
      { reason: 'not-active', detail: 'was not restarted' },
    ],
  ])('a service %s is not restarted', async (_, then, job, { reason, detail }) => {
    const systemd = runningService(then, job)
    expect(await restart(systemd)).toMatchObject({
      outcome: 'failed',
      reason,
      detail: expect.stringContaining(detail) as string,
    })
  })

  test('a oneshot service is restarted when it has ended successfully', async () => {
    const systemd = runningService({
      activeState: 'inactive',
      isOneshot: true,
      result: 'success',
      invocationId: nextInvocation,
    })
    expect(await restart(systemd)).toEqual({
      outcome: 'restarted',
      invocationId: nextInvocation,
    })
  })

  test('a service that did not run because of its condition need not be restarted', async () => {
    const systemd = runningService({ activeState: 'inactive', conditionResult: false })
    expect(await restart(systemd, { previousInvocation: '' })).toMatchObject({
      outcome: 'not-needed',
    })
  })

  test('a service that dies while it is watched is not restarted', async () => {
    const systemd = runningService()
    systemd.clock.startTimer(50, () =>
      systemd.setUnit(unitName, {
        activeState: 'failed',
        subState: 'failed',
        result: 'exit-code',
        execMainCode: 1,
        execMainStatus: 1,
      }),
    )
    expect(await restart(systemd, { settleMs: 150 })).toMatchObject({
      outcome: 'failed',
      reason: 'not-active',
    })
  })

  test.each([0, 100])('a service that somebody else restarts %i ms after is restarted', async (afterMs) => {
    const systemd = runningService()
    const stopping: Partial<Unit> = { activeState: 'deactivating', invocationId: nextInvocation, job: 6 }
    const invocationId = 'c'.repeat(32)
    systemd.clock.startTimer(afterMs, () => systemd.setUnit(unitName, stopping))
    systemd.clock.startTimer(900, () => systemd.setUnit(unitName, { activeState: 'active', invocationId }))
    expect(await restart(systemd, { settleMs: 150 })).toEqual({ outcome: 'restarted', invocationId })
  })

  test.each([
    ['NoSuchUnit', 'no-such-unit'],
    ['UnitMasked', 'masked'],
    ['BadUnitSetting', 'bad-unit'],
    ['OnlyByDependency', 'refused'],
  ])('a restart is refused with %s', async (error, reason) => {
    const systemd = runningService()
    systemd.refuses('RestartUnit', `org.freedesktop.systemd1.${error}`, 'words')
    expect(await restart(systemd)).toEqual({
      outcome: 'failed',
      reason,
      detail: `words (org.freedesktop.systemd1.${error})`,
    })
  })

  test('a restart is not requested on a host that is going down', async () => {
    const systemd = runningService()
    systemd.refuses('RestartUnit', 'org.freedesktop.systemd1.TransactionIsDestructive', 'words')
    expect(await restart(systemd)).toMatchObject({
      outcome: 'not-requested',
    })
  })

  test('a restart that takes too long fails with a reason', async () => {
    const systemd = runningService()
    systemd.answers('RestartUnit', ['/job/5'])
    expect(await restart(systemd, { timeoutMs: 30 })).toMatchObject({
      outcome: 'failed',
      reason: 'timeout',
    })
  })
})

describe('a restart whose end is lost is unknown', () => {
  test.each([
    ['before the answer', false],
    ['after the answer', true],
  ])('the outcome of a restart is unknown when the connection ends %s', async (_, answers) => {
    const systemd = runningService()
    systemd.answers('RestartUnit', () => {
      systemd.clock.startTimer(10, () => systemd.hangUp())
      return answers ? ['/job/5'] : 'silent'
    })
    expect(await restart(systemd)).toMatchObject({
      outcome: 'unknown',
    })
  })

  test('the outcome of a restart is unknown when systemd leaves the bus', async () => {
    const systemd = runningService()
    systemd.answers('RestartUnit', () => {
      systemd.clock.startTimer(10, systemd.leaveBus)
      return ['/job/5']
    })
    expect(await restart(systemd)).toMatchObject({
      outcome: 'unknown',
    })
  })

  test('the outcome of an aborted restart is unknown', async () => {
    const systemd = runningService()
    const abortController = new AbortController()
    systemd.answers('RestartUnit', () => {
      systemd.clock.startTimer(10, () => abortController.abort())
      return ['/job/5']
    })
    expect(await restart(systemd, { signal: abortController.signal })).toMatchObject({
      outcome: 'unknown',
    })
  })

  test('the unit decides the outcome of a restart whose answer was lost', async () => {
    const systemd = connectSystemd()
    systemd.setUnit(unitName, { activeState: 'active', invocationId: previousInvocation, job: 5 })
    systemd.clock.startTimer(80, () =>
      systemd.setUnit(unitName, { activeState: 'active', invocationId: nextInvocation }),
    )
    const confirm = async (changes: Partial<RestartRequest> = {}) =>
      await systemd.settled(confirmRestart({ ...requestOf(systemd), ...changes }), 2_000)
    expect(await confirm()).toEqual({
      outcome: 'restarted',
      invocationId: nextInvocation,
    })
    systemd.setUnit(unitName, { activeState: 'active', invocationId: previousInvocation })
    expect(await confirm()).toMatchObject({
      outcome: 'not-requested',
    })
    systemd.setUnit(unitName, {
      activeState: 'failed',
      invocationId: nextInvocation,
      result: 'exit-code',
      execMainCode: 1,
      execMainStatus: 1,
    })
    expect(await confirm()).toMatchObject({
      outcome: 'failed',
      reason: 'not-active',
    })
    systemd.setUnit(unitName, { activeState: 'activating', invocationId: nextInvocation })
    expect(await confirm({ timeoutMs: 60 })).toMatchObject({
      outcome: 'failed',
      reason: 'timeout',
    })
  })
})

test('a restart without a bus is not requested', async () => {
  const systemd = connectSystemd()
  systemd.connection.close()
  expect(await restart(systemd)).toMatchObject({
    outcome: 'not-requested',
  })
})
