import { describe, expect, test } from 'vitest'
import { systemClock, systemRandom } from '../../daemon/platform/system-clock.ts'
import { type FakeAnswer, startFakeBus } from '../../../test/support/fake-bus.ts'
import { createBusConnection } from './reconnecting.ts'

const thing = { destination: 'org.example', path: '/org/example', interface: 'org.example.Thing' }
const jobs = { sender: 'org.freedesktop.systemd1', interface: 'org.freedesktop.systemd1.Manager', member: 'JobRemoved' }

async function startConnection() {
  const server = await startFakeBus()
  server.answers('Do', {})
  const connection = createBusConnection({ clock: systemClock, random: systemRandom, socketPath: server.socketPath })
  return {
    server,
    connection,
    call: () => connection.withBus((bus) => bus.call({ ...thing, member: 'Do' })),
    async [Symbol.asyncDispose]() {
      connection.close()
      await server.stop()
    },
  }
}

describe('a connection that is kept', () => {
  test('a kept connection connects at its first use only', async () => {
    await using bus = await startConnection()
    expect(bus.connection.state()).toMatchObject({ state: 'disconnected' })
    expect(bus.server.clients).toHaveLength(0)
    await Promise.all([bus.call(), bus.call(), bus.call()])
    expect(bus.connection.state()).toMatchObject({ state: 'connected' })
    expect(bus.server.clients).toHaveLength(1)
  })

  test('a kept connection reconnects by itself and reports each change', async () => {
    await using bus = await startConnection()
    const states: string[] = []
    bus.connection.onState(({ state }) => states.push(state))
    await bus.call()
    bus.server.hangUpAll()
    await expect.poll(() => states).toEqual(['connected', 'disconnected', 'connected'])
    await bus.call()
    expect(bus.server.clients).toHaveLength(2)
  })

  test('a kept connection never repeats a call that was under way when it ended', async () => {
    await using bus = await startConnection()
    await bus.call()
    bus.server.answers('Do', ({ client }) => {
      client.hangUp()
      return 'silent'
    })
    await expect(bus.call()).rejects.toMatchObject({ name: 'NoReplyError', reason: 'connection-lost' })
    expect(bus.server.calledMembers()).toEqual(['Do', 'Do'])
  })

  test('a kept connection renews every subscription after it reconnects', async () => {
    await using bus = await startConnection()
    const received: string[] = []
    bus.connection.onSignal(jobs, () => received.push('early'))
    await bus.call()
    bus.connection.onSignal(jobs, () => received.push('late'))
    bus.server.hangUpAll()
    await expect.poll(() => bus.server.clients.length).toBe(2)
    await bus.call()
    bus.server.signal('JobRemoved', 's', ['x'])
    await expect.poll(() => received).toEqual(['early', 'late'])
  })

  test('a kept connection prepares every new connection before its first use', async () => {
    await using bus = await startConnection()
    bus.server.answers('Prepare', {})
    bus.connection.onConnect(async (bus) => {
      await bus.call({ ...thing, member: 'Prepare' })
    })
    await bus.call()
    bus.server.hangUpAll()
    await expect.poll(() => bus.server.clients.length).toBe(2)
    await bus.call()
    expect(bus.server.calledMembers()).toEqual(['Prepare', 'Do', 'Prepare', 'Do'])
  })

  test('a connection that cannot be prepared is dropped for the next one', async () => {
    await using bus = await startConnection()
    let failures = 1
    bus.server.answers('Prepare', (): FakeAnswer => (failures-- > 0 ? { error: 'org.example.NotYet' } : {}))
    bus.connection.onConnect(async (bus) => {
      await bus.call({ ...thing, member: 'Prepare' })
    })
    await bus.call()
    expect(bus.server.clients).toHaveLength(2)
  })

  test('a bus that accepts and hangs up is asked less and less often', async () => {
    await using server = await startFakeBus()
    let connections = 0
    server.answers('Hello', ({ client }) => {
      connections++
      client.hangUp()
      return 'silent'
    })
    const connection = createBusConnection({
      clock: systemClock,
      random: { ...systemRandom, number: () => 0 },
      socketPath: server.socketPath,
    })
    await expect(connection.withBus(async () => {}, { timeoutMs: 400 })).rejects.toThrow(
      /no system bus for 400 ms: cannot connect/,
    )
    connection.close()
    expect(connections).toBeGreaterThan(2)
    expect(connections).toBeLessThan(8) // 20, 40, 80, 160, 320 ms apart
  })

  test('waiting for a bus reports why there is none, and can be aborted', async () => {
    const connection = createBusConnection({ clock: systemClock, random: systemRandom, socketPath: '/nonexistent/bus' })
    await expect(connection.withBus(async () => {}, { timeoutMs: 30 })).rejects.toThrow(/ENOENT/)
    expect(connection.state()).toMatchObject({
      state: 'disconnected',
      why: expect.stringContaining('ENOENT') as string,
    })
    await expect(
      connection.withBus(async () => {}, { signal: AbortSignal.abort(new Error('enough')) }),
    ).rejects.toThrow('enough')
    const waiting = connection.withBus(async () => {})
    connection.close()
    await expect(waiting).rejects.toThrow('closed')
    await expect(connection.withBus(async () => {})).rejects.toThrow('closed')
  })
})
