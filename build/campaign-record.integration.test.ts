import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { campaignRecord } from './campaign-record.ts'

test('a record is of the sources that a program is made of, whatever their comments say', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'campaign-'))
  const cache = process.env['SKYHOOKD_CACHE']
  process.env['SKYHOOKD_CACHE'] = join(folder, 'cache')
  onTestFinished(() => {
    if (cache === undefined) delete process.env['SKYHOOKD_CACHE']
    else process.env['SKYHOOKD_CACHE'] = cache
    rmSync(folder, { recursive: true })
  })
  const [program, part] = [join(folder, 'program.js'), join(folder, 'part.js')]
  const recordOf = async (text: string): Promise<string> => {
    writeFileSync(program, "import { part } from './part.js'\nconsole.log(part)\n")
    writeFileSync(part, text)
    const { file, sources } = await campaignRecord('sample', [relative(join(import.meta.dirname, '..'), program)])
    expect(file).toBe(join(folder, 'cache', 'campaigns', `sample-${sources}`))
    expect(existsSync(dirname(file))).toBe(true)
    return file
  }
  const first = await recordOf('export const part = 1\n')
  expect(await recordOf('// the only one\nexport const part = 1\n')).toBe(first)
  expect(await recordOf('export const part = 2\n')).not.toBe(first)
})
