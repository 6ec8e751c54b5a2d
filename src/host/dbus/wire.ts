/**
 * The D-Bus wire: authentication, framing and messages. No sockets and no policy; dbus-next does the encoding.
 * Its own connection is not used because its parser runs inside a stream listener, where a message that is cut or not
 * D-Bus at all throws past every handler and ends the process.
 */
import DBusBuffer from 'dbus-next/lib/dbus-buffer.js'
import { marshallMessage, messageToJsFmt } from 'dbus-next/lib/marshall-compat.js'
import { Message } from 'dbus-next/lib/message-type.js'

export const messageType = { methodCall: 1, methodReturn: 2, error: 3, signal: 4 } as const

export type BusMessage = {
  readonly type: number
  readonly serial: number
  readonly path?: string
  readonly interface?: string
  readonly member?: string
  readonly errorName?: string
  readonly replySerial?: number
  readonly destination?: string
  readonly sender?: string
  readonly signature?: string
  readonly body: readonly unknown[]
}

const fixedHeaderBytes = 16
/** The protocol's own limit; a longer length means that the stream is not D-Bus. */
const maxMessageBytes = 128 * 1024 * 1024
const littleEndian = 0x6c
const bigEndian = 0x42
const headerFields = [
  '',
  'path',
  'interface',
  'member',
  'errorName',
  'replySerial',
  'destination',
  'sender',
  'signature',
] as const

/** Bytes of one message. Throws when a name, a path or a value does not fit the protocol or the signature. */
export function encodeMessage(message: Omit<BusMessage, 'type'> & { type?: number }): Buffer {
  const [bytes] = marshallMessage(new Message({ ...message, type: message.type ?? messageType.methodCall }))
  return bytes
}

function decodeMessage(bytes: Buffer): BusMessage {
  const buffer = new DBusBuffer(bytes, 0, bytes[0] ?? 0, undefined, { ayBuffer: true })
  const [, type, , , , serial, fields] = buffer.read('yyyyuua(yv)') as [
    number,
    number,
    number,
    number,
    number,
    number,
    [number, [unknown, [unknown]]][],
  ]
  const message: Record<string, unknown> = { type, serial }
  for (const [code, [, [value]]] of fields) {
    const name = headerFields[code]
    if (name) message[name] = value
  }
  buffer.align(3)
  const signature = message['signature'] as string | undefined
  message['body'] = signature ? messageToJsFmt({ signature, body: buffer.read(signature) }).body : []
  return message as BusMessage
}

function messageLength(header: Buffer): number {
  const endian = header[0]
  if (endian !== littleEndian && endian !== bigEndian) throw new Error('the bus sent data that is not D-Bus')
  const read = (offset: number) => (endian === littleEndian ? header.readUInt32LE(offset) : header.readUInt32BE(offset))
  const fieldsBytes = Math.ceil(read(12) / 8) * 8
  const length = fixedHeaderBytes + fieldsBytes + read(4)
  if (length > maxMessageBytes)
    throw new Error(`the bus announced a message of ${length} bytes, more than the protocol allows`)
  return length
}

/**
 * Cuts a stream into messages. Feed it chunks of any size; it returns the messages that became complete, in order.
 * Throws when the stream is not D-Bus: nothing after that can be understood and the connection has to end.
 */
export function createMessageReader(): (chunk: Buffer) => BusMessage[] {
  let chunks: Buffer[] = []
  let bufferedBytes = 0
  let neededBytes = fixedHeaderBytes
  return (chunk) => {
    chunks.push(chunk)
    bufferedBytes += chunk.length
    const messages: BusMessage[] = []
    while (bufferedBytes >= neededBytes) {
      const bytes: Buffer = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
      chunks = [bytes]
      const length = messageLength(bytes)
      if (bufferedBytes < length) {
        neededBytes = length
        break
      }
      messages.push(decodeMessage(bytes.subarray(0, length)))
      chunks = length === bytes.length ? [] : [bytes.subarray(length)]
      bufferedBytes -= length
      neededBytes = fixedHeaderBytes
    }
    return messages
  }
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
