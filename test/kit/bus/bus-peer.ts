import { connect } from 'node:net'
import { createMessageReader } from '../../../src/host/dbus/framing.ts'
import {
  authenticationRequest,
  decodeBody,
  encodeMessage,
  messageType,
  type OutgoingMessage,
  readAuthentication,
} from '../../../src/host/dbus/wire.ts'
import type { BusMessage } from './fake-bus.ts'

type Outgoing = Omit<OutgoingMessage, 'serial' | 'body'> & { readonly body?: readonly unknown[] }

/** Anybody on a real bus: sends what it likes, and answers the calls that it gets. */
export async function connectBusPeer(socketPath: string) {
  const socket = connect(socketPath)
  let serial = 0
  const replies = new Map<number, (message: BusMessage) => void>()
  const services = new Map<string, (message: BusMessage) => readonly unknown[]>()
  let authentication: Buffer | undefined = Buffer.alloc(0)

  const send = (message: Outgoing): number => {
    socket.write(encodeMessage({ ...message, body: message.body ?? [], serial: ++serial }))
    return serial
  }
  const onMessage = (message: BusMessage): void => {
    replies.get(message.replySerial ?? 0)?.(message)
    const answer = message.type === messageType.methodCall && services.get(message.member ?? '')
    if (!answer) return
    const [signature, ...body] = answer(message) as [string, ...unknown[]]
    const { sender, serial: replySerial } = message
    send({ type: messageType.methodReturn, destination: sender ?? '', replySerial, signature, body })
  }
  const read = createMessageReader({
    isExpected: () => true,
    onMessage: (message) => onMessage({ ...message.header, body: decodeBody(message) }),
  })
  socket.on('error', () => undefined) // the bus throws out who sends nonsense
  socket.on('data', (chunk: Buffer) => {
    let bytes: Buffer | undefined = chunk
    if (authentication) {
      authentication = Buffer.concat([authentication, chunk])
      bytes = readAuthentication(authentication)
      if (bytes) authentication = undefined
    }
    if (bytes) read(bytes)
  })
  const callBus = async (member: string, signature = '', body: readonly unknown[] = []): Promise<BusMessage> => {
    const answered = Promise.withResolvers<BusMessage>()
    const at = { destination: 'org.freedesktop.DBus', path: '/org/freedesktop/DBus' }
    const call = { ...at, type: messageType.methodCall, interface: 'org.freedesktop.DBus', member, signature, body }
    replies.set(send(call), answered.resolve)
    return await answered.promise
  }
  socket.write(authenticationRequest(process.getuid?.() ?? 0))
  const hello = await callBus('Hello')
  return {
    name: String(hello.body[0]),
    callBus,
    send,
    /** Resolves when the bus may be sent more, or has hung up. */
    async sendBytes(bytes: Buffer): Promise<void> {
      if (!socket.write(bytes) && !socket.destroyed)
        await new Promise<void>((resolve) => {
          socket.once('drain', resolve)
          socket.once('close', () => resolve())
        })
    },
    /** Answers a method: signature, then the values. */
    answers: (member: string, answer: (message: BusMessage) => readonly unknown[]) => services.set(member, answer),
    /** Hangs up once everything is sent, and the bus has read it. */
    async end(): Promise<void> {
      socket.end()
      if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve))
    },
  }
}
