import { expect, test } from 'vitest'
import { besideCells } from './beside.ts'

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
