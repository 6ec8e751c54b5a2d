import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readLines } from './watch.ts'

async function* chunked(bytes: Buffer, at: readonly number[]): AsyncGenerator<Uint8Array> {
  const ends = [...new Set(at.map((n) => n % (bytes.length + 1)))].toSorted((x, y) => x - y)
  let from = 0
  for (const end of [...ends, bytes.length]) {
    if (end > from) yield bytes.subarray(from, end)
    from = end
  }
}

async function collect(stream: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = []
  for await (const line of stream) all.push(line)
  return all
}

test('lines come out whole, wherever the bytes were cut, even inside a character', async () => {
  // the unit `binary` of fast-check takes a second to create
  const character = fc.integer({ min: 0, max: 0x10ffff }).map((codePoint) => String.fromCodePoint(codePoint))
  const lineArbitrary = fc.string({ unit: character, minLength: 1 }).map((text) => JSON.stringify({ text }))
  await fc.assert(
    fc.asyncProperty(fc.array(lineArbitrary), fc.array(fc.nat()), async (expectedLines, at) => {
      const bytes = Buffer.from(expectedLines.map((line) => `${line}\n`).join(''))
      expect(await collect(readLines(chunked(bytes, at)))).toEqual(expectedLines)
    }),
  )
})

test('a stream that ends inside a line throws after it has yielded the whole lines', async () => {
  const received: string[] = []
  const reading = (async () => {
    for await (const line of readLines(chunked(Buffer.from('{"a":1}\n{"b":'), []))) received.push(line)
  })()
  await expect(reading).rejects.toThrow('ended inside an event')
  expect(received).toEqual(['{"a":1}'])
})
