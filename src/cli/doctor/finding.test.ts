import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { catalogue } from './finding.ts'

test('docs/usage/doctor.md has the row of the code for each finding', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/usage/doctor.md'), 'utf8')
  const [, table = ''] = page.split('## Findings')
  const rows = table.split('\n').filter((line) => line.startsWith('| `'))
  expect(rows).toEqual(
    Object.entries(catalogue).map(([id, { severity, meaning }]) => `| \`${id}\` | ${severity} | ${meaning} |`),
  )
})
