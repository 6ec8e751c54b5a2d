/**
 * The header of a message: who sent what to whom. Parsed by hand, so that a message of an unknown sender costs no more
 * than its header, and the worst that it can cause is that it is dropped.
 */

/** The fields that a message may have. */
export type MessageFields = {
  readonly path?: string
  readonly interface?: string
  readonly member?: string
  readonly errorName?: string
  readonly replySerial?: number
  readonly destination?: string
  readonly sender?: string
  readonly signature?: string
}

export type MessageHeader = MessageFields & {
  readonly isBigEndian: boolean
  readonly type: number
  readonly serial: number
  readonly bodyBytes: number
}

/** The fixed-length part of each message. */
export const fixedHeaderBytes = 16

export type FixedHeader = Pick<MessageHeader, 'isBigEndian' | 'type' | 'serial' | 'bodyBytes'> & {
  readonly fieldsBytes: number
}

/** The protocol's own limit; a longer length means that the stream is not D-Bus. */
const maxMessageBytes = 128 * 1024 * 1024
/** The first byte of a message gives its byte order. */
export const littleEndian = 0x6c
export const bigEndian = 0x42

/** Throws when the bytes are not D-Bus: nothing after them can be understood. */
export function readFixedHeader(bytes: Buffer): FixedHeader {
  const endian = bytes[0]
  if (endian !== littleEndian && endian !== bigEndian) throw new Error('the bus sent data that is not D-Bus')
  const isBigEndian = endian === bigEndian
  const [bodyBytes, serial, fieldsBytes] = [4, 8, 12].map((offset) => readUint(bytes, offset, isBigEndian)) as [
    number,
    number,
    number,
  ]
  const length = fixedHeaderBytes + paddedLength(fieldsBytes) + bodyBytes
  if (length > maxMessageBytes)
    throw new Error(`the bus announced a message of ${length} bytes, more than the protocol allows`)
  return { isBigEndian, type: bytes[1] ?? 0, serial, bodyBytes, fieldsBytes }
}

export const paddedLength = (bytes: number): number => Math.ceil(bytes / 8) * 8

/** By code: the field's name and its type in the protocol. */
const knownFields: readonly (readonly [name: string, type: string] | undefined)[] = [
  undefined,
  ['path', 'o'],
  ['interface', 's'],
  ['member', 's'],
  ['errorName', 's'],
  ['replySerial', 'u'],
  ['destination', 's'],
  ['sender', 's'],
  ['signature', 'g'],
]

/** Undefined for malformed fields; unknown fields may only have equally simple types. */
export function readHeader(fixed: FixedHeader, fields: Buffer): MessageHeader | undefined {
  const { fieldsBytes, ...header } = fixed
  const values: Record<string, unknown> = {}
  try {
    for (let at = 0; at < fieldsBytes; ) {
      at = paddedLength(at)
      const code = fields.readUInt8(at)
      const type = fields.toString('latin1', at + 2, at + 3)
      if (fields.readUInt8(at + 1) !== 1 || fields.readUInt8(at + 3) !== 0) return undefined
      const { value, end } = readSimple(fields, at + 4, type, fixed.isBigEndian)
      const [name, expectedType] = knownFields[code] ?? []
      if (name !== undefined && type !== expectedType) return undefined
      if (name !== undefined) values[name] = value
      at = end
    }
  } catch (error) {
    if (error instanceof RangeError) return undefined // wrong lengths
    throw error
  }
  return { ...header, ...values }
}

function readSimple(
  bytes: Buffer,
  at: number,
  type: string,
  isBigEndian: boolean,
): { readonly value: string | number; readonly end: number } {
  if (type === 'g') return readString(bytes, at + 1, bytes.readUInt8(at))
  if (type !== 's' && type !== 'o' && type !== 'u') throw new RangeError(`a field of type ${type}`)
  const number = readUint(bytes, at, isBigEndian)
  return type === 'u' ? { value: number, end: at + 4 } : readString(bytes, at + 4, number)
}

function readString(bytes: Buffer, at: number, length: number): { readonly value: string; readonly end: number } {
  const end = at + length + 1
  if (end > bytes.length) throw new RangeError('a string beyond the end')
  return { value: bytes.toString('utf8', at, at + length), end }
}

const readUint = (bytes: Buffer, at: number, isBigEndian: boolean): number =>
  isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)
