import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeConditions, skyhookConditions } from '../../src/schemas/catalogue/conditions.ts'
import { nodeEvents, skyhookEvents } from '../../src/schemas/catalogue/events.ts'
import { metrics } from '../../src/schemas/catalogue/metrics.ts'
import { reasonRows, reasons } from '../../src/schemas/catalogue/reasons.ts'
import { withTables } from './catalogue-tables.ts'

const src = join(import.meta.dirname, '..', '..', 'src')
const sourceFiles = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !/\.test\.ts$|^schemas\/(catalogue|generated)\//.test(file))
  .map((file) => ({ file, text: readFileSync(join(src, file), 'utf8') }))
const source = sourceFiles.map(({ text }) => text).join('\n')

const reasonNamesOf = (conditions: Readonly<Record<string, { readonly reasons: object }>>): string[] =>
  Object.values(conditions).flatMap((condition) => Object.keys(condition.reasons))
const conditionReasons = [...reasonNamesOf(nodeConditions), ...reasonNamesOf(skyhookConditions)]
const eventNames = [...Object.keys(nodeEvents), ...Object.keys(skyhookEvents)]

test('a page without the markers of a table is refused', () => {
  expect(() => withTables('events.md', '# Events\n')).toThrow('events.md: add markers for node, node reasons')
  expect(() => withTables('events.md', '<!-- generated: other -->\n<!-- end -->')).toThrow('has no table "other"')
})

test('the product uses every name of the catalogue', () => {
  const names = [...reasonRows.map(([name]) => name), ...eventNames, ...conditionReasons, ...Object.keys(metrics)]
  const unused = names.filter((name) => !source.includes(`'${name}'`) && !source.includes(` ${name}: `))
  expect(unused).toEqual([])
})

test('every reason that the product writes is in the catalogue', () => {
  const names = new Set([...Object.keys(reasons), ...eventNames, ...conditionReasons])
  const unknown = sourceFiles.flatMap(({ file, text }) =>
    [...text.matchAll(/reason: '([A-Z]\w+)'/g)].flatMap(([, name = '']) =>
      names.has(name) ? [] : [`${file}: ${name}`],
    ),
  )
  expect(unknown).toEqual([])
})
