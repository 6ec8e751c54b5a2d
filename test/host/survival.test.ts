import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { busDriver } from '../../src/host/dbus/subscriptions.ts'
import { readBootId } from '../../src/host/preflight/gather.ts'
import { listInhibitors, reboot } from '../../src/host/systemd/reboot.ts'
import { observeStepUnit } from '../../src/host/step/observe.ts'
import { forgetStepUnit } from '../../src/host/step/start.ts'
import { command, text } from '../../src/host/systemd/unit-properties.ts'
import { hasBus } from '../sandbox/host-os.ts'
import { bootHost, shell, startAgent, type SystemdHost, type TestAgent } from '../kit/cluster/systemd-host.ts'

let host: SystemdHost
let agent: TestAgent
let bootId: string
beforeAll(async () => {
  host = await bootHost()
  await host.root.mkdirp('/var/log/steps')
})
afterAll(async () => await host?.down())
beforeEach(async () => {
  agent = startAgent(host)
  bootId = await readBootId(host.root)
})
afterEach(() => agent.kill())

/** A step that reports its start and exits on request, with code 3. */
function steered(script = '') {
  const step = shell(`${script} echo started; until [ -e /run/go-$0 ]; do sleep 0.02; done; exit 3`)
  const request = { ...step, command: [...step.command, step.id] as unknown as typeof step.command }
  return {
    ...request,
    started: async () =>
      await expect
        .poll(async () => (await host.root.readFile(step.stdoutFile).catch(() => '')).toString())
        .toBe('started\n'),
    go: async () => await host.root.writeFile(`/run/go-${step.id}`, '', 0o644),
  }
}

const exited = { state: 'ended', result: { outcome: 'exited', code: 3 }, source: 'file' }

describe('a dead agent', () => {
  test('a step outlives its agent, and the next agent continues where the first stopped', async () => {
    const step = steered()
    await agent.start(step)
    await step.started()
    agent.kill()
    const next = startAgent(host)
    expect(await observeStepUnit(next.stepHost, step)).toEqual({ state: 'running' })
    await step.go()
    expect(await next.awaitEnd({ ...step, bootId })).toMatchObject(exited)
    await forgetStepUnit(next.stepHost, step)
    next.kill()
  })

  test.each([0, 3])('a step that ends with code %i between two agents is known to the next agent', async (code) => {
    const step = shell(`sleep 0.2; exit ${code}`)
    await agent.start(step)
    agent.kill()
    await expect.poll(async () => await host.root.stat(`/var/lib/skyhook/.agent/results/${step.id}`)).toBeDefined()
    const next = startAgent(host)
    expect(await next.awaitEnd({ ...step, bootId })).toMatchObject({
      state: 'ended',
      result: { outcome: 'exited', code },
      source: 'file',
    })
    expect(
      await observeStepUnit(next.stepHost, { ...step, bootId: '00000000-0000-0000-0000-000000000000' }),
    ).not.toMatchObject({
      source: 'file',
    })
    next.kill()
  })
})

describe('a disturbed host', () => {
  test('a step outlives a daemon-reload, with its record and arguments', async () => {
    const step = steered("x='$;';")
    await agent.start(step)
    await step.started()
    await agent.units.reload()
    await agent.units.reload() // each one would add backslashes
    await step.go()
    expect(await agent.awaitEnd({ ...step, bootId })).toMatchObject(exited)
    expect((await agent.units.readState(step.unit)).loadState).toBe('loaded')
  })

  test('a step outlives a re-execution of systemd', async () => {
    const step = steered()
    await agent.start(step)
    await step.started()
    const interrupted = new Promise((resolve) => agent.units.onInterrupted(resolve))
    await host.exec('systemctl', 'daemon-reexec')
    await interrupted
    await step.go()
    expect(await agent.awaitEnd({ ...step, bootId })).toMatchObject(exited) // its signals come from a new bus name
  })

  test.runIf(hasBus).each([
    ['restarted', ['systemctl', 'restart', 'dbus']],
    ['killed', ['systemctl', 'kill', '--signal=KILL', 'dbus']],
  ])('a step outlives a bus that is %s', async (_, disturbance) => {
    const step = steered()
    await agent.start(step)
    await step.started()
    const end = agent.awaitEnd({ ...step, bootId })
    await host.exec(...disturbance)
    await expect.poll(() => agent.connection.state().state).toBe('connected')
    await step.go()
    expect(await end).toMatchObject(exited)
  })

  test.runIf(hasBus)('a restarted bus still keeps the result of a step until it is read', async () => {
    const step = shell('until [ -e /run/go-on ]; do sleep 0.02; done')
    await agent.start(step)
    await host.exec('systemctl', 'restart', 'dbus')
    await expect.poll(async () => (await observeStepUnit(agent.stepHost, step)).state).toBe('running')
    await host.exec('mount', '-t', 'tmpfs', '-o', 'size=4k,mode=500', 'full', '/var/lib/skyhook/.agent/results')
    await host.exec('sh', '-c', 'head -c 4096 /dev/zero >/var/lib/skyhook/.agent/results/ballast')
    await host.root.writeFile('/run/go-on', '', 0o644)
    // otherwise it would be gone with its success
    expect(await agent.awaitEnd(step)).toMatchObject({ source: 'unit', result: { outcome: 'exited', code: 0 } })
    await host.exec('umount', '/var/lib/skyhook/.agent/results')
  })
})

describe.runIf(hasBus)('a bus that does not answer', () => {
  // logind of systemd 257 has not come back to the bus that was restarted above
  beforeAll(async () => void (await host.exec('systemctl', 'restart', 'systemd-logind')))

  test('a call to a frozen service times out, and later calls succeed', async () => {
    await agent.units.readState('dbus.service')
    await host.exec('systemctl', 'kill', '--signal=STOP', '--kill-who=main', 'systemd-logind')
    await expect(listInhibitors(agent.connection, { timeoutMs: 100 })).rejects.toMatchObject({
      name: 'NoReplyError',
      reason: 'timeout',
    })
    expect(await reboot(agent.connection, { timeoutMs: 100 })).toMatchObject({
      outcome: 'refused',
      reason: expect.stringContaining('restart systemd-logind.service') as string,
    })
    await host.exec('systemctl', 'kill', '--signal=CONT', '--kill-who=main', 'systemd-logind')
    expect(await listInhibitors(agent.connection)).toEqual([])
  })

  test('a message that is too long ends the connection, and the next one succeeds', async () => {
    const tooManyBytes = 129 * 2 ** 20 // D-Bus itself ends at 128 MiB, and dbus-daemon takes 32
    const call = { ...busDriver, member: 'GetNameOwner', signature: 's', body: ['x'.repeat(tooManyBytes)] }
    await expect(agent.connection.withBus((bus) => bus.call(call))).rejects.toMatchObject({
      name: 'NoReplyError',
      reason: 'connection-lost',
    })
    expect((await agent.units.readState('dbus.service')).activeState).toBe('active')
  })
})

describe('a reboot', () => {
  test.runIf(hasBus)('a reboot is refused while an inhibitor blocks it', async () => {
    const blocker = [
      '/usr/bin/systemd-inhibit',
      '--what=shutdown',
      '--mode=block',
      '--who=a test',
      '--why=it writes',
      '/bin/sleep',
      '60',
    ] as const
    await agent.units.startTransient('blocker.service', [text('Type', 'simple'), command('ExecStart', blocker)])
    await expect.poll(() => listInhibitors(agent.connection)).toHaveLength(1)
    expect(await reboot(agent.connection)).toMatchObject({
      outcome: 'refused',
      reason: expect.stringMatching(/^a test \(pid \d+\) blocks it: it writes$/) as string,
    })
    await agent.units.stop('blocker.service')
    await expect.poll(() => listInhibitors(agent.connection)).toEqual([])
    expect(await readBootId(host.root)).toBe(bootId)
  })

  test('a reboot changes the boot id, and the steps that it stopped record that', async () => {
    const [step, deaf] = [steered(), steered('trap "" TERM;')]
    await agent.start(step)
    await agent.start({ ...deaf, stopTimeoutMs: 100 })
    await Promise.all([step.started(), deaf.started()])
    const outcome = await reboot(agent.connection)
    expect(['accepted', 'unknown']).toContain(outcome.outcome) // the bus may end before the answer
    await host.awaitBoot(bootId)
    expect(await readBootId(host.root)).not.toBe(bootId)
    const next = startAgent(host)
    expect(await observeStepUnit(next.stepHost, { ...step, bootId })).toMatchObject({
      state: 'ended',
      result: { outcome: 'killed', signal: 'SIGTERM' },
      source: 'file',
      isHostStopping: true,
    })
    expect(await observeStepUnit(next.stepHost, { ...deaf, bootId })).toMatchObject({
      state: 'ended',
      result: { outcome: 'timeout' },
      source: 'file',
      isHostStopping: true,
    })
    await forgetStepUnit(next.stepHost, step) // the unit is already gone, which is fine
    expect(await next.run(shell('exit 3'))).toMatchObject(exited) // /run is empty after a boot
    next.kill()
  })

  test('a power cut leaves no trace of a step, which does not count as success', async () => {
    const step = steered()
    await agent.start(step)
    await step.started()
    await host.crash()
    const next = startAgent(host)
    expect(await observeStepUnit(next.stepHost, { ...step, bootId })).toEqual({ state: 'absent' })
    next.kill()
  })
})
