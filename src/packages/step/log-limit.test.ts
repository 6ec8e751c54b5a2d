import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { afterCut, cutOf, cutWindowBytes, windowsOf } from './log-limit.ts'
import { createOutputReader, initialCursor, type OutputCursor } from './output-reader.ts'

const limit = 1 << 20
const quarter = limit / 4
const reader = createOutputReader([])

/** The file after a cut by the agent. */
function shortened(file: Buffer): { readonly file: Buffer; readonly cut: ReturnType<typeof cutOf> } {
  const windows = windowsOf(file.length, limit)
  if (windows === undefined) throw new Error('within the limit')
  const piece = (offset: number): Buffer => file.subarray(offset, offset + cutWindowBytes)
  const cut = cutOf(windows, piece(windows.headOffset), piece(windows.tailOffset))
  return { cut, file: Buffer.concat([file.subarray(0, cut.from), cut.note, file.subarray(cut.to)]) }
}
const linesOf = (count: number, first = 0): string =>
  Array.from({ length: count }, (_, index) => `line ${first + index}\n`).join('')

describe('a log that is too long', () => {
  test('a log within the limit is left alone', () => {
    expect(windowsOf(limit, limit)).toBeUndefined()
  })

  test('a log keeps whole lines of its beginning and of its end, and says how many bytes are gone', () => {
    const before = Buffer.from(linesOf(100_000))
    const { file } = shortened(before)
    const match = /\n--- skyhookd left out (\d+) bytes ---\n/.exec(file.toString())
    const [head, tail] = file.toString().split(match?.[0] ?? '')
    expect(before.toString().startsWith(`${head}\nline`)).toBe(true)
    expect(before.toString().endsWith(`\n${tail}`)).toBe(true)
    expect(Number(match?.[1])).toBe(before.length - `${head}\n${tail}`.length)
    expect(head?.length).toBeGreaterThan(quarter - 100)
    expect(tail?.length).toBeGreaterThan(quarter - cutWindowBytes)
    expect(file.length).toBeLessThan(limit)
  })

  test('a log that is cut many times has one note, with the sum', () => {
    let file: Buffer = Buffer.from('')
    let written = 0
    for (let round = 0; round < 40; round++) {
      const more = Buffer.from(linesOf(20_000, round * 20_000))
      written += more.length
      file = Buffer.concat([file, more])
      if (windowsOf(file.length, limit)) file = shortened(file).file
    }
    const notes = [...file.toString().matchAll(/--- skyhookd left out (\d+) bytes ---\n/g)]
    expect(notes).toHaveLength(1)
    expect(Number(notes[0]?.[1])).toBe(written - (file.length - (notes[0]?.[0].length ?? 0)))
    expect(file.toString().endsWith('line 799999\n')).toBe(true)
  })

  test('output without line breaks is cut where the limit says', () => {
    const { file, cut } = shortened(Buffer.alloc(2_000_000, 'x'))
    expect(cut).toMatchObject({ from: quarter, to: 2_000_000 - quarter, isBetweenLines: false })
    expect(file.subarray(quarter, quarter + 2).toString()).toBe('\n-')
  })
})

describe('the reader of a log that is cut', () => {
  const before = Buffer.from(linesOf(100_000))
  const { cut, file } = shortened(before)
  const readAll = (content: Buffer, cursor: OutputCursor): readonly string[] => {
    const from = cursor.offset + cursor.pending.length
    return reader.read(cursor, content.subarray(from), true).lines
  }

  test('what was read before the cut is not read again, and nothing is skipped that is left', () => {
    fc.assert(
      fc.property(fc.nat(before.length), (size) => {
        const { lines, cursor } = reader.read(initialCursor(), before.subarray(0, size))
        const rest = readAll(file, afterCut(cursor, cut))
        const all = [...lines, ...rest]
        expect(new Set(all).size).toBe(all.length)
        expect(all.at(-1)).toBe('line 99999')
        const kept = file
          .toString()
          .split('\n')
          .filter((line) => line !== '' && !line.startsWith('---'))
        const seen = new Set(all)
        expect(kept.filter((line) => !seen.has(line))).toEqual([])
      }),
      { numRuns: 10 },
    )
  })

  test('no half of a secret is read where output without line breaks is cut', () => {
    const secret = 'correct-horse-battery'
    const masking = createOutputReader([secret])
    for (let shift = 0; shift < secret.length; shift += 4) {
      const long = Buffer.from(`${'x'.repeat(shift)}${secret.repeat(60_000)}\nthe end\n`)
      const { cut, file } = shortened(long)
      for (const size of [0, quarter - 10, quarter, 700_000, long.length - quarter]) {
        const { lines, cursor } = masking.read(initialCursor(), long.subarray(0, size))
        const next = afterCut(cursor, cut)
        const rest = masking.read(next, file.subarray(next.offset + next.pending.length), true).lines
        expect([...lines, ...rest].join('').replaceAll(/[x*]|the end/g, ''), `shift ${shift}, read ${size}`).toBe('')
        expect(rest.at(-1)).toBe('the end')
      }
    }
  })
})
