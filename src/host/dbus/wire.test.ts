import fc from 'fast-check'
import { Variant } from 'dbus-next/lib/variant.js'
import { describe, expect, test } from 'vitest'
import { createMessageReader, encodeMessage, messageType, readAuthentication } from './wire.ts'

const call = { path: '/org/example', interface: 'org.example.Thing', member: 'Do', destination: 'org.example' }

describe('messages', () => {
  test('come back as they were sent, with 64-bit numbers, bytes, structures and variants', () => {
    const body = [2n ** 64n - 1n, Buffer.from('bytes'), ['a', 7], { key: new Variant('a(sb)', [['x', true]]) }]
    const [message] = createMessageReader()(encodeMessage({ ...call, serial: 3, signature: 'tay(su)a{sv}', body }))
    expect(message).toMatchObject({ ...call, serial: 3, body })
  })

  test('without values have an empty body', () => {
    expect(createMessageReader()(encodeMessage({ ...call, serial: 1, body: [] }))).toMatchObject([
      { member: 'Do', body: [] },
    ])
  })

  test('are found whatever the pieces in which they arrive', () => {
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

  test('with a name, a path or a value that D-Bus does not have are refused', () => {
    expect(() => encodeMessage({ ...call, path: 'no/slash', serial: 1, body: [] })).toThrow('Invalid object path')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 's', body: ['nul \0'] })).toThrow('null byte')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [1.5] })).toThrow('BigInt')
    expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [undefined] })).toThrow('expected value')
  })
})

describe('a stream that is not D-Bus', () => {
  test('is refused at its first bytes', () => {
    expect(() => createMessageReader()(Buffer.from('HTTP/1.1 400 Bad Request\r\n'))).toThrow('not D-Bus')
  })

  test('is refused when it announces more than the protocol allows, before that is waited for', () => {
    const header = Buffer.alloc(16)
    header.write('l')
    header.writeUInt32LE(0x7fff_ffff, 4)
    expect(() => createMessageReader()(header)).toThrow('more than the protocol allows')
  })

  test('is refused when a message is nonsense inside', () => {
    const bytes = encodeMessage({ ...call, type: messageType.signal, serial: 1, signature: 's', body: ['text'] })
    expect(() => createMessageReader()(Buffer.from(bytes).fill(0xff, 16))).toThrow(Error)
  })
})

describe('the answer to the authentication', () => {
  test('is waited for until its line is whole', () => expect(readAuthentication(Buffer.from('OK 12'))).toBeUndefined())
  test('leaves what follows it', () => expect(readAuthentication(Buffer.from('OK 12\r\nl'))?.toString()).toBe('l'))
  test('may be a refusal', () =>
    expect(() => readAuthentication(Buffer.from('REJECTED EXTERNAL\r\n'))).toThrow('REJECTED EXTERNAL'))
  test('has to be a line', () => expect(() => readAuthentication(Buffer.alloc(20_000, 'x'))).toThrow('with a line'))
})
