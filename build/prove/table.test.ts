import { expect, test } from 'vitest'
import { tableOf } from './table.ts'

test('the table has a row for each part, within 100 columns', () => {
  const sources = '0123456789abcdef'
  const text = tableOf(
    [
      { part: 'fleets, seeds', proven: 1_234, of: 20_000, failed: 0, minutes: 12.34, sources },
      { part: 'crash points', proven: 0, of: undefined, failed: 1, minutes: undefined, sources },
      { part: 'mutants, unit tests', proven: 44, of: 44, failed: 0, minutes: 0.5, sources },
    ],
    'fea63d7+',
  )
  expect(text.split('\n').slice(0, 4)).toEqual([
    '| part                | proven |    of | failed | minutes | sources          | commit   |',
    '| ------------------- | -----: | ----: | -----: | ------: | ---------------- | -------- |',
    '| fleets, seeds       |   1234 | 20000 |      0 |    12.3 | 0123456789abcdef | fea63d7+ |',
    '| crash points        |      0 |     ? |      1 |       – | 0123456789abcdef | fea63d7+ |',
  ])
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
})
