/** Cuts the stream of a connection into messages. */
export type ReceivedMessage = { readonly header: MessageHeader; readonly body: Buffer }

export type MessageReaderOptions = {
  /** Asked once the header is known. The body of an unexpected message is never in memory as a whole. */
  readonly isExpected: (header: MessageHeader) => boolean
  /** In the order of the stream; a message is delivered before the header of the next one is looked at. */
  readonly onMessage: (message: ReceivedMessage) => void
}

/** Headers of real messages are a few hundred bytes. A path may be of any length, and so may unknown fields. */
const maxFieldsBytes = 16 * 1024

/**
 * Takes in chunks of any size. Throws when the stream is not D-Bus: nothing after that can be understood and the
 * connection must end.
 */
export function createMessageReader({ isExpected, onMessage }: MessageReaderOptions): (chunk: Buffer) => void {
  const queue = createByteQueue()
  let fixed: FixedHeader | undefined
  let header: MessageHeader | undefined
  let bytesToSkip = 0

  /** The next message starts after that many bytes. */
  function startOver(bytes: number): true {
    bytesToSkip = bytes
    fixed = header = undefined
    return true
  }

  /** One step further; false when more bytes are needed for it. */
  function advance(): boolean {
    if (bytesToSkip > 0) {
      bytesToSkip -= queue.drop(bytesToSkip)
      return bytesToSkip === 0
    }
    if (!fixed) {
      const bytes = queue.take(fixedHeaderBytes)
      if (!bytes) return false
      fixed = readFixedHeader(bytes)
    }
    if (!header) {
      const fieldsBytes = paddedLength(fixed.fieldsBytes)
      if (fieldsBytes > maxFieldsBytes) return startOver(fieldsBytes + fixed.bodyBytes)
      const fields = queue.take(fieldsBytes)
      if (!fields) return false
      header = readHeader(fixed, fields)
      if (!header || !isExpected(header)) return startOver(fixed.bodyBytes)
    }
    const body = queue.take(header.bodyBytes)
    if (!body) return false
    const message = { header, body }
    startOver(0)
    onMessage(message)
    return true
  }

  return (chunk) => {
    queue.push(chunk)
    while (advance());
  }
}

/** Bytes in the order of their arrival, joined only when they are taken. */
function createByteQueue() {
  let chunks: Buffer[] = []
  let bytes = 0
  return {
    push(chunk: Buffer): void {
      chunks.push(chunk)
      bytes += chunk.length
    },
    /** The next `count` bytes, or undefined while there are not as many. */
    take(count: number): Buffer | undefined {
      if (bytes < count) return undefined
      const [first = Buffer.alloc(0)] = chunks
      const joined = first.length >= count ? first : Buffer.concat(chunks)
      const rest = joined.subarray(count)
      chunks = [...(rest.length > 0 ? [rest] : []), ...(joined === first ? chunks.slice(1) : [])]
      bytes -= count
      return joined.subarray(0, count)
    },
    /** Drops up to `count` bytes and returns their number. */
    drop(count: number): number {
      let dropped = 0
      while (dropped < count && chunks[0]) {
        const size = Math.min(count - dropped, chunks[0].length)
        if (size === chunks[0].length) chunks.shift()
        else chunks[0] = chunks[0].subarray(size)
        dropped += size
      }
      bytes -= dropped
      return dropped
    },
  }
}

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
const fixedHeaderBytes = 16

type FixedHeader = Pick<MessageHeader, 'isBigEndian' | 'type' | 'serial' | 'bodyBytes'> & {
  readonly fieldsBytes: number
}

/** The protocol's own limit; a longer length means that the stream is not D-Bus. */
const maxMessageBytes = 128 * 1024 * 1024
/** The first byte of a message gives its byte order. */
export const littleEndian = 0x6c
export const bigEndian = 0x42

/** Throws when the bytes are not D-Bus: nothing after them can be understood. */
function readFixedHeader(bytes: Buffer): FixedHeader {
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

const paddedLength = (bytes: number): number => Math.ceil(bytes / 8) * 8

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
function readHeader(fixed: FixedHeader, fields: Buffer): MessageHeader | undefined {
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
