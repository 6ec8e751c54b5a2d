import { afterEach, beforeEach, expect, test } from 'vitest'
import { startFakeBus } from '../../../test/kit/bus/fake-bus.ts'
import { systemClock, systemRandom } from '../../daemon/platform/system-clock.ts'
import { type BusConnection, createBusConnection } from '../dbus/reconnecting.ts'
import { createUnits, type Units } from './units.ts'

let bus: Awaited<ReturnType<typeof startFakeBus>>
let connection: BusConnection
let units: Units
/** Ends of jobs and interruptions. */
let received: string[]
/** Resolves once it was received. */
let arrived: (word: string) => Promise<void>

beforeEach(async () => {
  bus = await startFakeBus()
  bus.answers('ResetFailedUnit', {})
  connection = createBusConnection({
    clock: systemClock,
    random: systemRandom,
    sockets: { bus: bus.socketPath, systemd: '' },
  })
  units = createUnits(connection)
  received = []
  let onReceived = (): void => undefined
  const receive = (word: string): void => {
    received.push(word)
    onReceived()
  }
  units.onJobEnd(({ unit, job, result }) => receive(`${unit} ${job} ${result}`))
  units.onInterrupted(receive)
  arrived = (word) =>
    new Promise((resolve) => {
      onReceived = () => received.includes(word) && resolve()
      onReceived()
    })
  await units.resetFailed('a.service') // connects
})
afterEach(async () => {
  connection.close()
  await bus.stop()
})

const jobRemoved = (unit: string, result: string, job: string, sender?: string): void =>
  bus.signal('JobRemoved', 'uoss', [1, job, unit, result], sender)

test('ends of jobs are believed from systemd only', async () => {
  jobRemoved('a.service', 'failed', '/job/7', ':1.666') // any local user can send this
  jobRemoved('a.service', 'done', '/job/8')
  await arrived('a.service /job/8 done')
  expect(received).toEqual(['a.service /job/8 done'])
})

test('ends of jobs continue after systemd took another bus name, and the interruption is reported', async () => {
  const change = {
    type: 4,
    path: '/org/freedesktop/DBus',
    interface: 'org.freedesktop.DBus',
    member: 'NameOwnerChanged',
    signature: 'sss',
  }
  const [client] = bus.clients
  client?.send({ ...change, sender: ':1.666', body: ['org.freedesktop.systemd1', ':1.1', ':1.666'] })
  client?.send({ ...change, sender: 'org.freedesktop.DBus', body: ['org.freedesktop.systemd1', ':1.1', ':1.5'] })
  jobRemoved('a.service', 'old', '/job/1', ':1.1')
  jobRemoved('a.service', 'forged', '/job/1', ':1.666')
  jobRemoved('a.service', 'new', '/job/1', ':1.5')
  await arrived('a.service /job/1 new')
  expect(received).toEqual(['systemd left the bus', 'a.service /job/1 new'])
})
