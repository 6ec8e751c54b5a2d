/** Each of the original's scenarios has one test here, or a reason why not. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rows } from './rows.ts'
import { tableOf } from './table.ts'

const range = (letter: string, last: number, without: readonly number[]): string[] =>
  Array.from({ length: last }, (_, index) => index + 1)
    .filter((number) => !without.includes(number))
    .map((number) => `${letter}${String(number).padStart(2, '0')}`)

/** The missing numbers belong to no known scenario. */
const scenarios = [...range('C', 39, [5, 16, 20, 24, 29]), ...range('N', 15, [4, 6, 11])]

const tested = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.test.ts') && file !== 'rows.test.ts')
  .flatMap((file) => [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/test\(row\('(\w+)'\)/g)])
  .map(([, id]) => id)

describe('the table of scenarios', () => {
  test('the table of scenarios has every scenario once', () => {
    expect(rows.map(({ id }) => id)).toEqual(scenarios)
  })

  test('each tested row has one test, and no other row has one', () => {
    expect(tested.toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(
      rows.filter(({ status }) => status === 'tested').map(({ id }) => id),
    )
  })

  test('each row without a test has a reason', () => {
    const silent = rows.filter(({ status }) => status !== 'tested' && !/\w{3}/.test(Object.values(status).join()))
    expect(silent.map(({ id }) => id)).toEqual([])
  })
})

describe('the printed table', () => {
  const all = rows.map(({ id }) => ({ title: `${id} some: words`, status: 'passed', duration: 1_234 }))
  const passed = rows.filter(({ status }) => status === 'tested').length

  test('the printed table has a line for each row and the counts', () => {
    const { lines, failed } = tableOf(all)
    expect(failed).toBe(0)
    expect(lines).toHaveLength(rows.length + 3)
    expect(lines[0]).toMatch(/^C01 {2}skyhook\/simple-skyhook +MIX +passed +1\.2 s {2}apart from: /)
    expect(lines.at(-1)).toBe(`${passed} passed, 0 failed`)
  })

  test('the printed table counts a row that did not run as failed', () => {
    expect(tableOf(all.filter(({ title }) => !title.startsWith('C03'))).lines.at(-1)).toBe(
      `${passed - 1} passed, 1 failed`,
    )
  })
})
