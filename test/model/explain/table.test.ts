import { expect, test } from 'vitest'
import { reasons } from '../../../src/schemas/catalogue/reasons.ts'
import { reasonCodes } from '../../../src/schemas/catalogue/reason-codes.ts'
import { groups, withoutRow } from './table.ts'

const rows = Object.values(groups).flat()

test('the table has at least fifty situations, each once', () => {
  const titles = rows.map(({ title }) => title)
  expect(titles.length).toBeGreaterThanOrEqual(50)
  expect(new Set(titles).size).toBe(titles.length)
})

test('every cause of a reason is in the table, or listed with why it is not', () => {
  const broken = new Set(rows.flatMap(({ cause, also = [] }) => [cause, ...also]))
  const causes = [...new Set(Object.values(reasons).map(({ explain }) => explain.cause))]
  expect(causes.filter((cause) => !broken.has(cause) && withoutRow[cause] === undefined)).toEqual([])
  expect(Object.keys(withoutRow).filter((cause) => broken.has(cause as never))).toEqual([])
})

test('every code of an image is in the table', () => {
  const said = rows.flatMap(({ says = [] }) => says)
  const others = new Set(['stage-timeout', 'node-condition', 'other-operator'])
  expect(Object.keys(reasonCodes).filter((code) => !others.has(code) && !said.includes(code))).toEqual([])
})
