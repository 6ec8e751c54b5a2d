import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { attackNames } from '../kit/bus/bus-attacker.ts'
import { connectBusPeer } from '../kit/bus/bus-peer.ts'
import { startPrivateBus } from '../kit/bus/private-bus.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { connectSystemBus } from '../../src/host/dbus/connection.ts'
import type { BusSignal } from '../../src/host/dbus/messages.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const attacker = new URL('../kit/bus/bus-attacker.ts', import.meta.url).pathname
const systemd = 'org.freedesktop.systemd1'
const manager = { destination: systemd, path: '/org/freedesktop/systemd1', interface: `${systemd}.Manager` }
const jobRemoved = { sender: systemd, interface: manager.interface, member: 'JobRemoved', path: manager.path }

/** A real bus with a systemd on it, an agent connected to both, and what the agent received. */
async function startScene() {
  const bus = await startPrivateBus()
  const service = await connectBusPeer(bus.socketPath)
  await service.callBus('RequestName', 'su', [systemd, 0])
  let caller = ''
  service.answers('Ping', ({ sender }) => {
    caller = sender ?? ''
    return ['s', 'pong']
  })
  const agent = await connectSystemBus({ clock: systemClock, sockets: { bus: bus.socketPath, systemd: '' } })
  const received: BusSignal[] = []
  const hasEnded = { value: false }
  void agent.closed.then(() => (hasEnded.value = true))
  const ping = async (): Promise<readonly unknown[]> => await agent.call({ ...manager, member: 'Ping' })
  agent.onSignal(jobRemoved, (signal) => received.push(signal))
  await ping()
  return {
    bus,
    service,
    agent,
    received,
    hasEnded,
    ping,
    /** The agent's name on the bus. */
    victim: caller,
    jobEnds: (from: typeof service, result: string) =>
      from.send({ ...manager, type: 4, destination: caller, member: 'JobRemoved', signature: 's', body: [result] }),
    async [Symbol.asyncDispose]() {
      agent.close()
      await service.end()
      await bus[Symbol.asyncDispose]()
    },
  }
}

const usedBytes = (): number => process.memoryUsage().heapUsed

describe('strangers on a real bus', () => {
  test.each(attackNames)('the agent neither ends nor believes when a stranger sends %s', async (attack) => {
    await using scene = await startScene()
    const before = usedBytes()
    let peak = before
    let slowestMs = 0
    const attackOver = scene.bus.runAsStranger(process.execPath, [attacker, scene.bus.socketPath, scene.victim, attack])
    const pause = async (): Promise<true> => await sleep(10, true)
    while (await Promise.race([attackOver, pause()])) {
      const startMs = performance.now()
      await scene.ping()
      slowestMs = Math.max(slowestMs, performance.now() - startMs)
      peak = Math.max(peak, usedBytes())
    }
    expect(await scene.ping()).toEqual(['pong'])
    expect(scene.hasEnded.value).toBe(false)
    expect(scene.received).toEqual([])
    expect(slowestMs).toBeLessThan(onThisMachine(1_000))
    expect(peak - before).toBeLessThan(20 * 1024 * 1024)
    scene.jobEnds(scene.service, 'done')
    await expect.poll(() => scene.received.map(({ body }) => body)).toEqual([['done']])
  })

  test.each([
    ['PropertiesChanged', 'org.freedesktop.DBus.Properties', systemd],
    ['JobRemoved', manager.interface, systemd],
    ['PrepareForShutdown', 'org.freedesktop.login1.Manager', 'org.freedesktop.login1'],
  ])('a forged %s is not believed', async (member, interfaceName, sender) => {
    await using scene = await startScene()
    const reported: unknown[] = []
    scene.agent.onSignal({ sender, interface: interfaceName, member }, ({ body }) => reported.push(body[0]))
    await scene.ping()
    const stranger = await connectBusPeer(scene.bus.socketPath)
    const signal = { type: 4, path: '/any', interface: interfaceName, member, destination: scene.victim }
    const send = (from: typeof stranger, text: string) => from.send({ ...signal, signature: 's', body: [text] })
    send(stranger, 'forged')
    await stranger.callBus('GetId') // it is delivered
    await scene.ping()
    if (sender === systemd) send(scene.service, 'true')
    await expect.poll(async () => (await scene.ping(), reported)).toEqual(sender === systemd ? ['true'] : [])
    await stranger.end()
  })

  test('only the new owner is believed after a change of owner', async () => {
    await using scene = await startScene()
    const results = () => scene.received.map(({ body }) => body[0])
    const next = await connectBusPeer(scene.bus.socketPath)
    await next.callBus('RequestName', 'su', [systemd, 0]) // queued
    next.answers('Ping', () => ['s', 'pong of the next'])
    scene.jobEnds(next, 'too early')
    await next.callBus('GetId')
    scene.jobEnds(scene.service, 'old')
    await scene.service.callBus('ReleaseName', 's', [systemd])
    scene.jobEnds(scene.service, 'too late')
    await scene.service.callBus('GetId')
    scene.jobEnds(next, 'new')
    await expect.poll(results).toEqual(['old', 'new'])
    expect(await scene.ping()).toEqual(['pong of the next'])
    await next.end()
  })
})
