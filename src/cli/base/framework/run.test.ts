import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { controls, effectsOf, hostileTexts } from '../../../../test/kit/objects/hostile-texts.ts'
import { createTextOutput } from './run.ts'
import { yamlText } from './yaml-text.ts'

function outputOf(write: (output: ReturnType<typeof createTextOutput>) => void): string {
  let written = ''
  const stream = {
    write: (text: string) => void (written += text),
    isTerminal: true,
    hasColor: true,
    columns: () => 80,
  }
  write(createTextOutput(stream))
  return written
}

test.each(Object.entries(hostileTexts))('text reaches a terminal without effect, in lines that end: %s', (_, text) => {
  const written = outputOf((output) => output.write(`${text}\n`))
  expect(effectsOf(written)).toEqual([])
  expect(Math.max(...written.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(16 * 1024)
})

test('a screen first clears the terminal, and nothing else of it has an effect', () => {
  const written = outputOf((output) => output.screen('a\u001B[2Jb\n'))
  expect(written).toBe('\u001B[H\u001B[Jab\n')
})

test('a document keeps all characters', () => {
  const text = Object.values(controls).join('x')
  const written = outputOf((output) => output.document(`${JSON.stringify({ text })}\n`))
  expect([effectsOf(written), JSON.parse(written)]).toEqual([[], { text }])
})

test('YAML keeps all characters, and has no effect where it is printed', () => {
  const text = fc
    .array(fc.oneof(fc.string(), fc.constantFrom(...Object.values(controls))))
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, (value) => {
      const document = { [`key${value}`]: [value, `a\n${value}\nb`] }
      const yaml = yamlText(document)
      expect(effectsOf(yaml)).toEqual([])
      expect(parse(yaml)).toEqual(document)
    }),
  )
})
