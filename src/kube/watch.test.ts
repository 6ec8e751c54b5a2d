import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { lines } from './watch.ts'

async function* cut(bytes: Buffer, at: readonly number[]): AsyncGenerator<Uint8Array> {
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

test('lines come out whole, however the bytes were cut, also inside a character', async () => {
  const aLine = fc.string({ unit: 'binary', minLength: 1 }).map((text) => JSON.stringify({ text }))
  await fc.assert(
    fc.asyncProperty(fc.array(aLine), fc.array(fc.nat()), async (given, at) => {
      const bytes = Buffer.from(given.map((line) => `${line}\n`).join(''))
      expect(await collect(lines(cut(bytes, at)))).toEqual(given)
    }),
  )
})

test('a stream that ends inside a line is broken, after the whole lines were given', async () => {
  const seen: string[] = []
  const reading = (async () => {
    for await (const line of lines(cut(Buffer.from('{"a":1}\n{"b":'), []))) seen.push(line)
  })()
  await expect(reading).rejects.toThrow('ended inside an event')
  expect(seen).toEqual(['{"a":1}'])
})
