import { expect, test } from 'vitest'
import { isCovered, uncoveredRanges } from './ranges.ts'

type Statement = readonly [firstLine: number, lastLine: number, runs: number]

const coverageOf = (statements: readonly Statement[]) => ({
  statementMap: Object.fromEntries(
    statements.map(([first, last], id) => [id, { start: { line: first }, end: { line: last } }]),
  ),
  s: Object.fromEntries(statements.map(([, , runs], id) => [id, runs])),
})

test.each<[string, Statement[], string[]]>([
  ['nothing in an empty file', [], []],
  ['nothing that ran', [[1, 1, 3]], []],
  ['one line', [[4, 4, 0]], ['4']],
  ['a statement of several lines', [[4, 9, 0]], ['4-9']],
  [
    'neighbours as one place',
    [
      [3, 3, 0],
      [4, 6, 0],
      [9, 9, 0],
    ],
    ['3-9'],
  ],
  [
    'two places around what ran',
    [
      [9, 9, 0],
      [3, 3, 0],
      [5, 5, 1],
    ],
    ['3', '9'],
  ],
  [
    'no line of which a part ran',
    [
      [3, 3, 0],
      [3, 3, 1],
    ],
    [],
  ],
])('the report names %s', (_, statements, expected) => {
  expect(uncoveredRanges(coverageOf(statements))).toEqual(expected)
})

test('tests, generated files and other folders are not asked for', () => {
  const covered = ['src/daemon/main.ts', 'build/cover.ts']
  const others = [
    'build/cover/ranges.test.ts',
    'src/schemas/generated/package-config-validator.ts',
    'test/faults/matrix.ts',
    'docs/style.md',
  ]
  expect([...covered, ...others].filter(isCovered)).toEqual(covered)
})
