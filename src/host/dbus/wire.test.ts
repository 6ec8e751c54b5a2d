import fc from 'fast-check'
import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { createMessageReader, encodeMessage, messageType, readAuthentication } from './wire.ts'

const call = { path: '/org/example', interface: 'org.example.Thing', member: 'Do', destination: 'org.example' }

describe('messages', () => {
  test('a decoded message equals the encoded one, 64-bit numbers, bytes, structures and variants included', () => {
    const body = [2n ** 64n - 1n, Buffer.from('bytes'), ['a', 7], { key: new Variant('a(sb)', [['x', true]]) }]
    const [message] = createMessageReader()(encodeMessage({ ...call, serial: 3, signature: 'tay(su)a{sv}', body }))
    expect(message).toMatchObject({ ...call, serial: 3, body })
  })

  test('a message without values has an empty body', () => {
    expect(createMessageReader()(encodeMessage({ ...call, serial: 1, body: [] }))).toMatchObject([
      { member: 'Do', body: [] },
    ])
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
          const read = createMessageReader()
          const received: unknown[] = []
          for (let offset = 0, turn = 0; offset < bytes.length; turn++) {
            const size = sizes[turn % sizes.length] as number
            received.push(...read(bytes.subarray(offset, offset + size)).map(({ body }) => body[0]))
            offset += size
          }
          expect(received).toEqual(texts)
        },
      ),
    )
  })

  test('encoding refuses a name, a path or a value that D-Bus does not have', () => {
    expect(() => encodeMessage({ ...call, path: 'no/slash', serial: 1, body: [] })).toThrow('Invalid object path')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 's', body: ['nul \0'] })).toThrow('null byte')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [1.5] })).toThrow('BigInt')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [undefined] })).toThrow('expected value')
  })
})

describe('a stream that is not D-Bus', () => {
  test('a stream that is not D-Bus is refused at its first bytes', () => {
    expect(() => createMessageReader()(Buffer.from('HTTP/1.1 400 Bad Request\r\n'))).toThrow('not D-Bus')
  })

  test('a message longer than the protocol allows is refused as soon as it is announced', () => {
    const header = Buffer.alloc(16)
    header.write('l')
    header.writeUInt32LE(0x7fff_ffff, 4)
    expect(() => createMessageReader()(header)).toThrow('more than the protocol allows')
  })

  test('a message with a malformed body is refused', () => {
    const bytes = encodeMessage({ ...call, type: messageType.signal, serial: 1, signature: 's', body: ['text'] })
    expect(() => createMessageReader()(Buffer.from(bytes).fill(0xff, 16))).toThrow(Error)
  })
})

describe('the answer to the authentication', () => {
  test('an incomplete authentication line is waited for', () =>
    expect(readAuthentication(Buffer.from('OK 12'))).toBeUndefined())
  test('reading the authentication leaves the bytes that follow it', () =>
    expect(readAuthentication(Buffer.from('OK 12\r\nl'))?.toString()).toBe('l'))
  test('a refused authentication is an error', () =>
    expect(() => readAuthentication(Buffer.from('REJECTED EXTERNAL\r\n'))).toThrow('REJECTED EXTERNAL'))
  test('an endless authentication answer is an error', () =>
    expect(() => readAuthentication(Buffer.alloc(20_000, 'x'))).toThrow('with a line'))
})
