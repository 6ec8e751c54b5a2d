/** Cuts the stream of a connection into messages. */
import {
  fixedHeaderBytes,
  type FixedHeader,
  type MessageHeader,
  paddedLength,
  readFixedHeader,
  readHeader,
} from './header.ts'

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
