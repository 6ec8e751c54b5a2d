/**
 * The D-Bus wire: authentication and values. No sockets and no policy; dbus-next does the encoding. Its own connection
 * is not used, for two reasons. Its parser runs inside a stream listener, where a truncated or invalid message throws
 * past every handler and ends the process. And it decodes the messages of every sender.
 */
import DBusBuffer from 'dbus-next/lib/dbus-buffer.js'
import { marshallMessage, messageToJsFmt } from 'dbus-next/lib/marshall-compat.js'
import { Message } from 'dbus-next/lib/message-type.js'
import { bigEndian, littleEndian, type MessageFields, type ReceivedMessage } from './framing.ts'

export const messageType = { methodCall: 1, methodReturn: 2, error: 3, signal: 4 } as const

/** A message to be sent; `type` is a method call unless given. */
export type OutgoingMessage = MessageFields & {
  readonly type?: number
  readonly serial: number
  readonly body: readonly unknown[]
}

/** Bytes of one message. Throws when a name, a path or a value does not fit the protocol or the signature. */
export function encodeMessage(message: OutgoingMessage): Buffer {
  const [bytes] = marshallMessage(new Message({ ...message, type: message.type ?? messageType.methodCall }))
  return bytes
}

/** The values of a message. Throws when they do not fit their signature; costs much more memory than the body has. */
export function decodeBody({ header: { signature, isBigEndian }, body }: ReceivedMessage): readonly unknown[] {
  if (signature === undefined || signature === '') return []
  const endian = isBigEndian ? bigEndian : littleEndian
  const values = new DBusBuffer(body, 0, endian, undefined, { ayBuffer: true }).read(signature)
  return messageToJsFmt({ signature, body: values }).body
}

/**
 * The client's side of EXTERNAL authentication as `uid`, sent at once without waiting for answers to the single lines.
 */
export function authenticationRequest(uid: number): string {
  return `\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString('hex')}\r\nBEGIN\r\n`
}

const maxAuthenticationLineBytes = 16_384

/**
 * Reads the server's answer to `authenticationRequest`. Returns undefined while the line is incomplete, then the bytes
 * that follow it. Throws when the server refuses.
 */
export function readAuthentication(received: Buffer): Buffer | undefined {
  const end = received.indexOf('\r\n')
  if (end < 0) {
    if (received.length > maxAuthenticationLineBytes)
      throw new Error('the bus did not answer the authentication with a line')
    return undefined
  }
  const line = received.toString('latin1', 0, end)
  if (!line.startsWith('OK ')) throw new Error(`the bus refused the authentication: ${line.slice(0, 200)}`)
  return received.subarray(end + 2)
}
