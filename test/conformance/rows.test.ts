/** No row is forgotten: each of the original's scenarios has one test here, or the reason why not. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rows } from './rows.ts'
import { tableOf } from './table.ts'

const range = (letter: string, last: number, without: readonly number[]): string[] =>
  Array.from({ length: last }, (_, index) => index + 1)
    .filter((number) => !without.includes(number))
    .map((number) => `${letter}${String(number).padStart(2, '0')}`)

/** Numbers left out were never given to a scenario that is known. */
const scenarios = [...range('C', 39, [5, 16, 20, 24, 29]), ...range('N', 15, [4, 6, 11])]

const tested = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.test.ts') && file !== 'rows.test.ts')
  .flatMap((file) => [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/test\(row\('(\w+)'\)/g)])
  .map(([, id]) => id)

describe('the table of scenarios', () => {
  test('has every scenario once', () => {
    expect(rows.map(({ id }) => id)).toEqual(scenarios)
  })

  test('has one test for each row that is tested, and none for the others', () => {
    expect(tested.toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(
      rows.filter(({ status }) => status === 'tested').map(({ id }) => id),
    )
  })

  test('gives a reason for each row that is not', () => {
    const silent = rows.filter(({ status }) => status !== 'tested' && !/\w{3}/.test(Object.values(status).join()))
    expect(silent.map(({ id }) => id)).toEqual([])
  })
})

describe('what is printed', () => {
  const all = rows.map(({ id }) => ({ title: `${id} some: words`, status: 'passed', duration: 1_234 }))
  const passed = rows.filter(({ status }) => status === 'tested').length

  test('is a line for each row and the counts', () => {
    const { lines, failed } = tableOf(all)
    expect(failed).toBe(0)
    expect(lines).toHaveLength(rows.length + 3)
    expect(lines[0]).toMatch(/^C01 {2}skyhook\/simple-skyhook +MIX +passed +1\.2 s {2}apart from: /)
    expect(lines.at(-1)).toBe(`${passed} passed, 0 failed`)
  })

  test('counts a row that was not run as failed', () => {
    expect(tableOf(all.filter(({ title }) => !title.startsWith('C03'))).lines.at(-1)).toBe(
      `${passed - 1} passed, 1 failed`,
    )
  })
})
