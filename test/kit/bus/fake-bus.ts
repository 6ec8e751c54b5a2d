import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMessageReader, type MessageHeader } from '../../../src/host/dbus/framing.ts'
import { decodeBody, encodeMessage, messageType, type OutgoingMessage } from '../../../src/host/dbus/wire.ts'

/** A call as the fake received it. */
export type BusMessage = MessageHeader & { readonly body: readonly unknown[] }

export type FakeCall = { readonly message: BusMessage; readonly client: FakeClient }
export type FakeAnswer =
  | { readonly signature?: string; readonly body?: readonly unknown[] }
  | { readonly error: string; readonly text?: string }
  | 'silent'

/** A client's connection on the server side: for answers that a real bus would never give. */
export type FakeClient = {
  send(message: Omit<OutgoingMessage, 'serial' | 'body'> & { body?: readonly unknown[] }): void
  sendBytes(bytes: Uint8Array): void
  hangUp(): void
}

/** The sender that the fake's systemd signals have. */
export const fakeSystemd = ':1.1'

/** A private bus on a real unix socket: authentication and codec are real, the services are fake. */
export async function startFakeBus(
  options: { authentication?: 'ok' | 'rejected' | 'silent'; losesEarlyMessages?: boolean } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'fake-bus-'))
  const socketPath = join(folder, 'bus')
  const services = new Map<string, (call: FakeCall) => FakeAnswer>()
  const calls: BusMessage[] = []
  const sockets = new Set<Socket>()
  const clients: FakeClient[] = []
  const events = new EventEmitter()
  let serial = 0

  function answer(client: FakeClient, message: BusMessage, answer: FakeAnswer): void {
    if (answer === 'silent') return
    const replySerial = message.serial
    if ('error' in answer) {
      client.send({
        type: messageType.error,
        replySerial,
        errorName: answer.error,
        signature: 's',
        body: [answer.text ?? ''],
      })
    } else client.send({ type: messageType.methodReturn, replySerial, ...answer })
  }

  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    const client: FakeClient = {
      send: (message) => socket.write(encodeMessage({ ...message, body: message.body ?? [], serial: ++serial })),
      sendBytes: (bytes) => socket.write(bytes),
      hangUp: () => socket.destroySoon(),
    }
    clients.push(client)
    events.emit('change')
    const read = createMessageReader({
      isExpected: () => true,
      onMessage(received) {
        const message = { ...received.header, body: decodeBody(received) }
        calls.push(message)
        events.emit('change')
        const service = services.get(message.member ?? '')
        if (service) answer(client, message, service({ message, client }))
        else
          answer(client, message, { error: 'org.freedesktop.DBus.Error.UnknownMethod', text: `no ${message.member}` })
      },
    })
    let greeting = Buffer.alloc(0)
    let authenticated = false
    socket.on('data', (chunk: Buffer) => {
      let bytes = chunk
      if (!authenticated) {
        greeting = Buffer.concat([greeting, chunk])
        const begin = greeting.indexOf('BEGIN\r\n')
        if (begin < 0 || options.authentication === 'silent') return
        socket.write(
          options.authentication === 'rejected' ? 'REJECTED EXTERNAL\r\n' : 'OK 0123456789abcdef0123456789abcdef\r\n',
        )
        authenticated = true
        bytes = options.losesEarlyMessages ? Buffer.alloc(0) : greeting.subarray(begin + 'BEGIN\r\n'.length)
      }
      read(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))

  const bus = {
    socketPath,
    /** Every call so far, of all clients. */
    calls,
    clients,
    /** The members called so far, without the bus's own. */
    calledMembers: () =>
      calls.filter(({ destination }) => destination !== 'org.freedesktop.DBus').map(({ member }) => member),
    /** Sets the answer of a method: a constant, or a function of the call. */
    answers(member: string, service: FakeAnswer | ((call: FakeCall) => FakeAnswer)) {
      services.set(member, typeof service === 'function' ? service : () => service)
    },
    /** Sends a signal to all clients, by default as systemd. */
    signal(member: string, signature: string, body: readonly unknown[], sender = fakeSystemd) {
      const message = {
        type: messageType.signal,
        path: '/org/freedesktop/systemd1',
        interface: 'org.freedesktop.systemd1.Manager',
        member,
        signature,
        body,
        sender,
      }
      for (const client of clients) client.send(message)
    },
    /** Resolves once the condition holds for the calls and clients so far. */
    async until(isReached: () => boolean): Promise<void> {
      while (!isReached()) await once(events, 'change')
    },
    hangUpAll() {
      for (const socket of sockets) socket.destroy()
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      rmSync(folder, { recursive: true, force: true })
    },
    async [Symbol.asyncDispose]() {
      await bus.stop()
    },
  }
  bus.answers('Hello', { signature: 's', body: [':1.9'] })
  bus.answers('AddMatch', {})
  bus.answers('RemoveMatch', {})
  bus.answers('GetNameOwner', { signature: 's', body: [fakeSystemd] })
  bus.answers('Subscribe', {})
  return bus
}
