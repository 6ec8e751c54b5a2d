import { expect, test } from 'vitest'
import { chooseSocket, hostSockets } from './connection.ts'

const sockets = hostSockets('/host')

test.each([
  ['the bus is there', [sockets.bus, sockets.systemd], { path: '/host/run/dbus/system_bus_socket', isPeer: false }],
  ['systemd alone is there', [sockets.systemd], { path: '/host/run/systemd/private', isPeer: true }],
  ['neither is there', [], { path: '/host/run/dbus/system_bus_socket', isPeer: false }],
])('the socket is chosen by what the host has: %s', (_, present, chosen) => {
  expect(chooseSocket(sockets, (path) => present.includes(path))).toEqual(chosen)
})
