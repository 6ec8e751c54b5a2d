import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../test/kit/files/temporary-folder.ts'
import { campaignRecord } from './campaign-record.ts'

test('a record is of the sources that a program is made of, whatever their comments say', async () => {
  const folder = temporaryFolder()
  const cache = process.env['SKYHOOKD_CACHE']
  process.env['SKYHOOKD_CACHE'] = join(folder, 'cache')
  onTestFinished(() => {
    if (cache === undefined) delete process.env['SKYHOOKD_CACHE']
    else process.env['SKYHOOKD_CACHE'] = cache
  })
  const [program, part] = ['program', 'part'].map((name) => join(folder, `${name}.ts`)) as [string, string]
  const recordOf = async (text: string): Promise<string> => {
    writeFileSync(program, `import { part } from ${JSON.stringify(part)}\nconsole.log(part)\n`)
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
