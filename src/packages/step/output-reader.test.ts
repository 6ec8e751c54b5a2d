import { describe, expect, test } from 'vitest'
import { createMask } from './mask.ts'
import { createOutputReader, endOf, initialCursor, type OutputCursor } from './output-reader.ts'

/** The lines of each read, and finally those of the end. */
function readPieces(pieces: readonly string[], secrets: readonly string[] = [], start = initialCursor()) {
  const reader = createOutputReader(secrets)
  let cursor: OutputCursor = start
  const reads = pieces.map((piece) => {
    const { lines, cursor: next } = reader.read(cursor, Buffer.from(piece, 'latin1'))
    cursor = next
    return lines
  })
  return [...reads, reader.read(cursor, Buffer.alloc(0), true).lines]
}

const utf8 = (text: string): string => Buffer.from(text).toString('latin1')
const key = '-----BEGIN KEY-----\nab\ncd\n-----END KEY-----\n'

test.each<[string, readonly string[], readonly string[], readonly (readonly string[])[]]>([
  ['whole lines come at once', ['a\nb\n'], [], [['a', 'b'], []]],
  ['a line waits for its end', ['a', 'b', '\nc'], [], [[], [], ['ab'], ['c']]],
  ['a carriage return ends a line', ['10%\r20%\r\n'], [], [['10%', '20%'], []]],
  ['empty lines and control characters are left out', ['\n\u001B[31mred\u001B[0m \n \n'], [], [['red'], []]],
  ['a character in two reads is one', [utf8('ä\n').slice(0, 1), utf8('ä\n').slice(1)], [], [[], ['ä'], []]],
  ['a secret is masked', ['x token1 y\n'], ['token1'], [['x *** y'], []]],
  ['a secret in two reads is masked', ['x tok', 'en1 y\n'], ['token1'], [[], ['x *** y'], []]],
  ['a secret that ends with the output is masked', ['x token1'], ['token1'], [[], ['x ***']]],
  ['what only starts like a secret is shown', ['x tok', 'yo\n'], ['token1'], [[], ['x tokyo'], []]],
  ['short values are not secrets', ['on 1\n'], ['on', '1'], [['on 1'], []]],
  ['a secret of several lines is masked as a whole', [key], [key], [['***'], []]],
  [
    'a secret of several lines in several reads is masked as a whole',
    ['x\n-----BEGIN KEY-----\n', 'ab\n', 'cd\n-----END', ' KEY-----\ny\n'],
    [key],
    [['x'], [], [], ['***', 'y'], []],
  ],
  [
    'each line of a secret of several lines is masked',
    ['x\n-----BEGIN KEY-----\n', 'other\n'],
    [key],
    [['x'], ['***', 'other'], []],
  ],
  ['a secret that starts with a line break holds nothing back', ['a\n', 'b\n'], ['\ntoken1'], [['a'], ['b'], []]],
  ['a secret that starts with a line break is masked', ['a\ntoken1\n'], ['\ntoken1'], [['a', '***'], []]],
])('%s', (_, pieces, secrets, expected) => {
  expect(readPieces(pieces, secrets)).toEqual(expected)
})

describe('long lines', () => {
  const size = 8 * 1024

  test('a long line is handed on in pieces', () => {
    const [first = [], last = []] = readPieces([`${'x'.repeat(2 * size + 10)}\n`])
    expect([first.map(({ length }) => length), last]).toEqual([[size, size, 10], []])
  })

  test('a long line without an end is handed on, but no half of a secret', () => {
    const reads = readPieces([`${'x'.repeat(size + 10)}tok`, 'en1\n'], ['token1'])
    expect(reads.flat().join('')).toBe(`${'x'.repeat(size + 10)}***`)
    expect(reads[0]?.join('').length).toBe(size + 10)
  })

  test('a long line without an end is not cut inside a character', () => {
    const reads = readPieces([`${'x'.repeat(size + 1)}${utf8('€').slice(0, 2)}`, `${utf8('€').slice(2)}\n`])
    expect(reads.flat().join('')).toBe(`${'x'.repeat(size + 1)}€`)
  })
})

test('output is masked the same in every two and three pieces as at once', () => {
  const secrets = ['token1', key, 'n1\nto', 'aaab']
  const text = `a token1 b\n${key}aaaab tok${'token1'.repeat(2)}\n-----BEGIN KEY-----\nab\n\nn1\ntoken1\nend token`
  const atOnce = createMask(secrets)
    .mask(text)
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
  for (let i = 0; i <= text.length; i++)
    for (let j = i; j <= text.length; j += 3) {
      const pieces = [text.slice(0, i), text.slice(i, j), text.slice(j)]
      expect(readPieces(pieces, secrets).flat()).toEqual(atOnce)
    }
})

describe('jumps', () => {
  const secret = 'first-line\nab\ncd'
  const text = `${'x'.repeat(20)}\n${secret}\nnext\nlast\n`

  test('a reader shows no part of a secret that starts before the place that it jumps to', () => {
    for (let offset = 1; offset < text.length; offset++) {
      const reader = createOutputReader([secret])
      const start = reader.jump(offset)
      const rest = text.slice(start.offset)
      for (let cut = 0; cut <= rest.length; cut++) {
        const lines = readPieces([rest.slice(0, cut), rest.slice(cut)], [secret], start).flat()
        expect(lines.filter((line) => !/^(x+|\*\*\*|next|last)$/.test(line))).toEqual([])
      }
    }
  })

  test('a reader that jumped shows whole lines', () => {
    const start = createOutputReader([]).jump(text.indexOf('next') - 2)
    expect(readPieces([text.slice(start.offset)], [], start).flat()).toEqual(['next', 'last'])
  })

  test('a reader that jumped keeps what may be the start of a secret', () => {
    const reader = createOutputReader([secret])
    const start = reader.jump(40)
    expect([start.offset, endOf(reader.read(start, Buffer.from('no end')).cursor)]).toEqual([
      40 - secret.length,
      46 - secret.length,
    ])
  })
})
