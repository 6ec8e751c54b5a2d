import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { changedSearches } from './searches.ts'

test('a search runs until it passes, and again when something that it imports has changed', async () => {
  const folder = temporaryFolder()
  const cache = process.env['SKYHOOKD_CACHE']
  process.env['SKYHOOKD_CACHE'] = join(folder, 'cache')
  onTestFinished(() => {
    if (cache === undefined) delete process.env['SKYHOOKD_CACHE']
    else process.env['SKYHOOKD_CACHE'] = cache
  })
  /** Returns its path from the root. */
  const write = (name: string, text: string): string => {
    const file = join(folder, `${name}.ts`)
    writeFileSync(file, text)
    return relative(join(import.meta.dirname, '../..'), file)
  }
  const part = (value: number): string => write('part', `// a comment\nexport const part = ${value}\n`)
  part(1)
  const one = write('one', "import { part } from './part'\nconsole.log('one', part)\n")
  const other = write('other', "console.log('other')\n")
  const look = (env: NodeJS.ProcessEnv = {}) => changedSearches([one, other], env)

  const first = await look()
  expect([first.run, first.known]).toEqual([[one, other], []])
  first.markPassed([one, other])
  const second = await look()
  expect([second.run, second.known]).toEqual([[], [one, other]])
  expect((await look({ ALL: '1' })).run).toEqual([one, other])
  expect((await look({ SEARCH_SEED: '7' })).run).toEqual([one, other])
  const beforeChange = await look({ ALL: '1' })
  part(2)
  const third = await look()
  expect([third.run, third.known]).toEqual([[one], [other]])
  beforeChange.markPassed([one])
  expect((await look()).run).toEqual([one])
})
