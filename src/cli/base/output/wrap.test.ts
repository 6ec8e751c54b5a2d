import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { wrapLine, besideCells } from './wrap.ts'

test('the rest of a line stands below the last cell, or a little further than its start', () => {
  expect(wrapLine('slot       CLOSED    all slots are taken by node1', 42)).toEqual([
    'slot       CLOSED    all slots are taken',
    '                     by node1',
  ])
  expect(wrapLine('  1 node StepFailed for 3m: it exited with 1 [node1]', 40)).toEqual([
    '  1 node StepFailed for 3m: it exited',
    '    with 1 [node1]',
  ])
})

test('a command stays whole, and without a terminal every line does', () => {
  const command = '  run:     kubectl skyhook logs tuning --node n2 --package tuned'
  expect([wrapLine(command, 20), wrapLine('a b c', undefined)]).toEqual([[command], ['a b c']])
})

test('lines have the text in its order, and only a word that is wider is in a line that is too wide', () => {
  const word = fc.stringMatching(/^[a-z-]{1,30}$/)
  const line = fc.tuple(fc.nat(4), fc.array(word, { minLength: 1, maxLength: 30 }))
  fc.assert(
    fc.property(line, fc.integer({ min: 20, max: 60 }), ([indent, pieces], columns) => {
      const lines = wrapLine(`${' '.repeat(indent)}${pieces.join(' ')}`, columns)
      expect(lines.flatMap((one) => one.trim().split(' '))).toEqual(pieces)
      for (const one of lines) if (one.trim().includes(' ')) expect(one.length).toBeLessThanOrEqual(columns)
    }),
  )
})

const cells = [
  ['slots', 6],
  ['ok', 4],
] as const

test.each([
  ['no line', [], ['slots  ok']],
  ['a line', ['3 slots'], ['slots  ok   3 slots']],
  ['lines', ['a', '  b'], ['slots  ok   a', '              b']],
])('cells with %s beside them', (_, lines, expected) => {
  expect(besideCells(cells, lines)).toEqual(expected)
})
