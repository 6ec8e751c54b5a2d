import { symlinkSync } from 'node:fs'
import { Variant } from 'dbus-next/lib/variant.js'
import { expect, test } from 'vitest'
import { startFakeBus } from '../../../test/kit/bus/fake-bus.ts'
import { createSeededRandom, createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { readBusFacts } from '../preflight/gather.ts'
import { flag, text } from '../systemd/unit-properties.ts'
import { createUnits } from '../systemd/units.ts'
import { NotConnectedError } from './errors.ts'
import { messageType } from './wire.ts'
import { createBusConnection } from './reconnecting.ts'

const jobRemoved = {
  type: messageType.signal,
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
  member: 'JobRemoved',
  signature: 'uoss',
}

/** systemd at its private socket: it knows no bus, refuses what only a bus can count, and loses what comes too early. */
async function connectPeer() {
  const peer = await startFakeBus({ losesEarlyMessages: true })
  for (const member of ['Hello', 'AddMatch', 'GetNameOwner', 'RefUnit', 'UnrefUnit'])
    peer.answers(member, { error: 'org.freedesktop.DBus.Error.InvalidArgs', text: 'no sender' })
  peer.answers('Ping', {})
  peer.answers('StartTransientUnit', { signature: 'o', body: ['/job/1'] })
  const clock = createVirtualClock()
  const busPath = `${peer.socketPath}-to-come`
  const connection = createBusConnection({
    clock,
    random: createSeededRandom(1),
    sockets: { bus: busPath, systemd: peer.socketPath },
  })
  const units = createUnits(connection)
  await connection.withBus(async () => undefined)
  return {
    peer,
    clock,
    busPath,
    connection,
    units,
    async [Symbol.asyncDispose]() {
      connection.close()
      await peer.stop()
    },
  }
}

test('systemd is subscribed to at its private socket without a word to a bus', async () => {
  await using setup = await connectPeer()
  expect(setup.peer.calls.map(({ member }) => member)).toEqual(['Ping', 'Subscribe'])
})

test('a unit is started at the private socket without a reference, which nobody could keep', async () => {
  await using setup = await connectPeer()
  const { units, peer } = setup
  const started = await units.startTransient('a.service', [
    text('CollectMode', 'inactive-or-failed'),
    flag('AddRef', true),
  ])
  expect(started).toEqual({ outcome: 'started', job: '/job/1' })
  expect(peer.calls.at(-1)?.body[2]).toMatchObject([['CollectMode', { value: 'inactive' }]]) // its failure is kept
  expect([await units.ref('a.service'), await units.unref('a.service')]).toEqual([true, false])
  expect(peer.calledMembers()).not.toContain('RefUnit')
})

test('ends of jobs come from the private socket unasked and without a sender', async () => {
  await using setup = await connectPeer()
  const jobs: unknown[] = []
  setup.units.onJobEnd((job) => jobs.push(job))
  const [client] = setup.peer.clients
  client?.send({ ...jobRemoved, interface: 'org.example', body: [1, '/job/1', 'b.service', 'done'] })
  client?.send({ ...jobRemoved, body: [1, '/job/1', 'a.service', 'done'] })
  await setup.units.startTransient('a.service', []) // the answer comes after the signals
  expect(jobs).toEqual([{ unit: 'a.service', job: '/job/1', result: 'done' }])
})

test('services other than systemd are unknown at the private socket, and not asked', async () => {
  await using setup = await connectPeer()
  const call = { destination: 'org.freedesktop.login1', path: '/', interface: 'org.freedesktop.login1', member: 'Do' }
  await expect(setup.connection.withBus(async (bus) => await bus.call(call))).rejects.toMatchObject({
    name: 'org.freedesktop.DBus.Error.ServiceUnknown',
  })
  expect(setup.peer.calledMembers()).not.toContain('Do')
})

test('a call to another service ends the connection to systemd once the host has a bus', async () => {
  await using setup = await connectPeer()
  await using bus = await startFakeBus()
  bus.answers('Do', {})
  symlinkSync(bus.socketPath, setup.busPath)
  const call = { destination: 'org.freedesktop.login1', path: '/', interface: 'org.freedesktop.login1', member: 'Do' }
  const ask = async () => await setup.connection.withBus(async (connected) => await connected.call(call))
  await expect(ask()).rejects.toBeInstanceOf(NotConnectedError)
  const asked = ask()
  await setup.clock.advance(100)
  expect(await asked).toEqual([])
})

test('the preflight finds systemd and no bus at the private socket', async () => {
  await using setup = await connectPeer()
  setup.peer.answers('Get', { signature: 'v', body: [new Variant('s', '252.39-1')] })
  expect(await readBusFacts(setup.connection)).toEqual({ systemd: '252.39-1', bus: 'none' })
})
