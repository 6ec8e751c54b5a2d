/** Output of steps that is made to bypass the masking, or to have an effect where it is displayed. */
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import {
  effectsOf,
  hostileTexts,
  secret,
  split,
  splitAtRandom,
  controls,
  wide,
} from '../../../test/kit/objects/hostile-texts.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { createOutputReader, initialCursor, tailOf } from './output-reader.ts'

/** The lines of output after a read in pieces of these sizes. */
function linesOf(output: Buffer, secrets: readonly string[], sizeOf: () => number): readonly string[] {
  const reader = createOutputReader(secrets)
  let cursor = initialCursor()
  const lines: string[] = []
  for (let start = 0; start < output.length; ) {
    const size = Math.max(1, sizeOf())
    const read = reader.read(cursor, output.subarray(start, start + size))
    lines.push(...read.lines)
    cursor = read.cursor
    start += size
  }
  return [...lines, ...reader.read(cursor, Buffer.alloc(0), true).lines]
}

async function tail(output: string, secrets: readonly string[]): Promise<string> {
  const { folder, host } = temporaryHost()
  await writeFile(join(folder, 'log'), output)
  return await tailOf(host, '/log', secrets)
}

const pieces = 7_919
const named = Object.entries(hostileTexts)

describe('what a step prints', () => {
  test.each(named)('%s: its lines are masked, bounded and without effect', (_, text) => {
    const lines = linesOf(Buffer.from(`${text}\nthe end\n`), [secret], () => pieces)
    expect([...new Set(lines.flatMap(effectsOf))]).toEqual([])
    expect(lines.join('\n')).not.toContain(secret)
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(8 * 1024)
    expect(lines.at(-1)).toBe('the end')
  })

  test.each(named)('%s: the tail of its log is masked, bounded and without effect', async (_, text) => {
    const found = await tail(text, [secret])
    expect(effectsOf(found)).toEqual([])
    expect(found).not.toContain(secret)
    expect(found.length).toBeLessThanOrEqual(600)
  })

  test('a secret with control sequences at random places is masked, however its output is cut', () => {
    const random = createSeededRandom(1)
    for (let round = 0; round < 600; round++) {
      const hidden = splitAtRandom(secret, random, 1 + Math.floor(random.number() * 4))
      const output = Buffer.from(`one ${hidden} two\nthree\n`)
      const lines = linesOf(output, [secret], () => 1 + Math.floor(random.number() * 12))
      expect(lines, JSON.stringify(hidden)).toEqual(['one *** two', 'three'])
    }
  })

  test('a secret of several lines is masked with other line ends and controls between its letters', () => {
    const key = '-----BEGIN KEY-----\nab\ncd\n-----END KEY-----\n'
    for (const control of ['', ...Object.values(controls)]) {
      const output = Buffer.from(`x\n${split(key.replaceAll('\n', '\r\n'), control)}y\n`)
      for (const size of [1, 5, 1_000]) expect(linesOf(output, [key], () => size)).toEqual(['x', '***', 'y'])
    }
  })

  test('a secret that has control characters itself is masked', () => {
    const odd = 'one\ttwo\u001Bthree\u200Bfour'
    expect(linesOf(Buffer.from(`x ${odd} y\n`), [odd], () => 3)).toEqual(['x *** y'])
  })

  test('UTF-16 output is text, and its secrets are masked', async () => {
    const utf16 = Buffer.from(`one ${secret} two\r\nthree\r\n`, 'utf16le')
    for (const output of [utf16, Buffer.from(utf16).swap16()])
      expect(linesOf(output, [secret], () => 5)).toEqual(['one *** two', 'three'])
    expect(await tail(wide(`one ${secret} two\n`), [secret])).toBe('one *** two')
  })

  test('a line without an end of which nothing can be seen waits in little memory', () => {
    const reader = createOutputReader([secret])
    let cursor = initialCursor()
    for (let read = 0; read < 300; read++)
      cursor = reader.read(cursor, Buffer.from('hun\u0000\u001B[0m'.repeat(1_000))).cursor
    expect(cursor.pending.length).toBeLessThan(512 * 1024)
  })

  test('a tail that starts inside of a secret does not show the rest of it', async () => {
    for (const length of [0, 3, 40, 500, 2_000])
      expect(
        await tail(`${split(secret, '\u001B[0m\u0000')}${'\u0000'.repeat(length)}${'y'.repeat(400)}`, [secret]),
      ).not.toMatch(/horse|correct/)
  })

  test('the tail of a log that ends in megabytes of nothing is short', async () => {
    const { folder, host } = temporaryHost()
    await appendFile(join(folder, 'log'), Buffer.alloc(3 << 20))
    expect(await tailOf(host, '/log', [secret])).toBe('')
  })
})
