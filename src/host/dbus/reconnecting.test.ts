import { describe, expect, test } from 'vitest'
import { startProcess } from '../../../test/kit/host/agent-process.ts'
import { createBus } from '../../../test/kit/host/bus.ts'
import { createSeededRandom, createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { BusError, NotConnectedError } from './errors.ts'
import { createBusConnection } from './reconnecting.ts'

const thing = { destination: 'org.example', path: '/org/example', interface: 'org.example.Thing' }
const jobs = { sender: 'org.freedesktop.systemd1', interface: 'org.freedesktop.systemd1.Manager', member: 'JobRemoved' }

function keepConnection() {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const process = startProcess({ id: 1, clock, wallMs: () => clock.wallMs(), uptimeMs: () => clock.steadyMs() })
  const calls: string[] = []
  let connections = 0
  const bus = createBus({ clock, carryOut: ({ member }) => (calls.push(member), []), onDisconnect: () => undefined })
  const connection = createBusConnection({
    clock,
    random: { ...createSeededRandom(1), number: () => 0 },
    sockets: { bus: '', systemd: '' },
    async connect() {
      connections++
      return bus.connect(process, async () => undefined)
    },
  })
  return {
    bus,
    clock,
    connection,
    calls,
    connections: () => connections,
    call: () => connection.withBus((bus) => bus.call({ ...thing, member: 'Do' })),
    /** The connection ends, and there is another one a moment later. */
    async reconnect() {
      bus.setUp(false)
      bus.setUp(true)
      await clock.advance(100)
    },
  }
}

describe('a connection that is kept', () => {
  test('a kept connection connects at its first use only', async () => {
    const kept = keepConnection()
    expect(kept.connection.state()).toMatchObject({ state: 'disconnected' })
    expect(kept.connections()).toBe(0)
    await Promise.all([kept.call(), kept.call(), kept.call()])
    expect(kept.connection.state()).toMatchObject({ state: 'connected' })
    expect(kept.connections()).toBe(1)
  })

  test('a kept connection reconnects by itself and reports each change', async () => {
    const kept = keepConnection()
    const states: string[] = []
    kept.connection.onState(({ state }) => states.push(state))
    await kept.call()
    await kept.reconnect()
    expect(states).toEqual(['connected', 'disconnected', 'connected'])
    await kept.call()
    expect(kept.connections()).toBe(2)
  })

  test('a kept connection never repeats a call that was under way when it ended', async () => {
    const kept = keepConnection()
    await kept.call()
    kept.bus.setFault(() => 'lost-answer')
    await expect(kept.call()).rejects.toMatchObject({ name: 'NoReplyError', reason: 'connection-lost' })
    expect(kept.calls).toEqual(['Do', 'Do'])
  })

  test('a kept connection renews every subscription after it reconnects', async () => {
    const kept = keepConnection()
    const received: string[] = []
    kept.connection.onSignal(jobs, () => received.push('early'))
    await kept.call()
    kept.connection.onSignal(jobs, () => received.push('late'))
    await kept.reconnect()
    expect(kept.connections()).toBe(2)
    await kept.call()
    kept.bus.signal(jobs.interface, 'JobRemoved', '/', ['x'])
    await kept.clock.advance(0)
    expect(received).toEqual(['early', 'late'])
  })

  test('a kept connection prepares every new connection before its first use', async () => {
    const kept = keepConnection()
    kept.connection.onConnect(async (bus) => {
      await bus.call({ ...thing, member: 'Prepare' })
    })
    await kept.call()
    await kept.reconnect()
    expect(kept.connections()).toBe(2)
    await kept.call()
    expect(kept.calls).toEqual(['Prepare', 'Do', 'Prepare', 'Do'])
  })

  test('a connection that cannot be prepared is dropped for the next one', async () => {
    const kept = keepConnection()
    let failures = 1
    kept.connection.onConnect(async () => {
      if (failures-- > 0) throw new BusError('org.example.NotYet', '')
    })
    const called = kept.call()
    await kept.clock.advance(100)
    await called
    expect(kept.connections()).toBe(2)
  })

  test('a bus that accepts and hangs up is asked less and less often', async () => {
    const kept = keepConnection()
    const askedAtMs: number[] = []
    kept.connection.onConnect(async () => {
      askedAtMs.push(kept.clock.monotonicMs())
      throw new NotConnectedError('the bus closed the connection')
    })
    const waiting = kept.connection.withBus(async () => {}, { timeoutMs: 400 }).catch(String)
    await kept.clock.advance(400)
    expect(await waiting).toContain('no system bus for 400 ms: the bus closed the connection')
    kept.connection.close()
    expect(askedAtMs).toEqual([0, 20, 60, 140, 300])
  })

  test('waiting for a bus reports why there is none, and can be aborted', async () => {
    const { bus, connection, clock } = keepConnection()
    bus.setUp(false)
    const inVain = connection.withBus(async () => {}, { timeoutMs: 30 }).catch(String)
    await clock.advance(30)
    expect(await inVain).toContain('ECONNREFUSED')
    expect(connection.state()).toMatchObject({
      state: 'disconnected',
      why: expect.stringContaining('ECONNREFUSED') as string,
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
