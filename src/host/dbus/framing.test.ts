import fc from 'fast-check'
import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { createMessageReader } from './framing.ts'
import { decodeBody, encodeMessage } from './wire.ts'

const call = { path: '/org/example', interface: 'org.example.Thing', member: 'Do', destination: 'org.example' }

/** All messages of a stream, decoded. */
function read(bytes: Buffer) {
  const messages: { serial: number; body: readonly unknown[] }[] = []
  createMessageReader({
    isExpected: () => true,
    onMessage: (message) => messages.push({ ...message.header, body: decodeBody(message) }),
  })(bytes)
  return messages
}

describe('messages', () => {
  test('a decoded message equals the encoded one, 64-bit numbers, bytes, structures and variants included', () => {
    const body = [2n ** 64n - 1n, Buffer.from('bytes'), ['a', 7], { key: new Variant('a(sb)', [['x', true]]) }]
    const [message] = read(encodeMessage({ ...call, serial: 3, signature: 'tay(su)a{sv}', body }))
    expect(message).toMatchObject({ ...call, serial: 3, body })
  })

  test('a message without values has an empty body', () => {
    expect(read(encodeMessage({ ...call, serial: 1, body: [] }))).toMatchObject([{ member: 'Do', body: [] }])
  })

  test('messages are found in chunks of any size', () => {
    const texts = fc.array(
      fc.string({ maxLength: 40 }).filter((text) => !text.includes('\0')),
      { minLength: 1, maxLength: 6 },
    )
    fc.assert(
      fc.property(
        texts,
        fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 40 }),
        (texts, sizes) => {
          const bytes = Buffer.concat(
            texts.map((text, index) => encodeMessage({ ...call, serial: index + 1, signature: 's', body: [text] })),
          )
          const received: unknown[] = []
          const readChunk = createMessageReader({
            isExpected: ({ serial }) => serial % 2 === 1, // the others are skipped wherever their chunks end
            onMessage: (message) => received.push(decodeBody(message)[0]),
          })
          for (let offset = 0, turn = 0; offset < bytes.length; turn++) {
            const size = sizes[turn % sizes.length] as number
            readChunk(bytes.subarray(offset, offset + size))
            offset += size
          }
          expect(received).toEqual(texts.filter((_, index) => index % 2 === 0))
        },
      ),
    )
  })
})

describe('a stream that is not D-Bus', () => {
  test('a stream that is not D-Bus is refused at its first bytes', () => {
    expect(() => read(Buffer.from('HTTP/1.1 400 Bad Request\r\n'))).toThrow('not D-Bus')
  })

  test('a message longer than the protocol allows is refused as soon as it is announced', () => {
    const header = Buffer.alloc(16)
    header.write('l')
    header.writeUInt32LE(0x7fff_ffff, 4)
    expect(() => read(header)).toThrow('more than the protocol allows')
  })
})

describe('a message that is not expected', () => {
  test('a message is delivered before the header of the next one decides about that', () => {
    const order: string[] = []
    const readChunk = createMessageReader({
      isExpected: ({ serial }) => order.push(`header ${serial}`) > 0,
      onMessage: ({ header }) => order.push(`message ${header.serial}`),
    })
    readChunk(Buffer.concat([1, 2].map((serial) => encodeMessage({ ...call, serial, body: [] }))))
    expect(order).toEqual(['header 1', 'message 1', 'header 2', 'message 2'])
  })

  test.each([
    ['larger than those of real messages', { ...call, path: `/${'a'.repeat(20_000)}` }, (bytes: Buffer) => bytes],
    ['that is not readable', call, (bytes: Buffer) => bytes.fill(0xff, 16, 24)],
    ['with a field of another type', call, (bytes: Buffer) => bytes.fill('s', 18, 19)],
  ])('a message with a header %s is dropped, and the next one read', (_, message, change) => {
    const bytes = change(encodeMessage({ ...message, serial: 1, signature: 's', body: ['text'] }))
    const next = encodeMessage({ ...call, serial: 2, body: [] })
    expect(read(Buffer.concat([bytes, next])).map(({ serial }) => serial)).toEqual([2])
  })

  test('a message of the other byte order is read', () => {
    const bytes = Buffer.from('B\x04\0\x01\0\0\0\x04\0\0\0\x09\0\0\0\x07\x08\x01g\0\x01u\0\0\0\0\0\x05', 'latin1')
    expect(read(bytes)).toMatchObject([{ serial: 9, signature: 'u', body: [5] }])
  })
})
