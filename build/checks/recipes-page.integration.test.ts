/** The packages of docs/usage/recipes.md, as a reader copies them. */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { filesOn, writeFilesOf } from '../../test/kit/pages/page-examples.ts'
import { runTool } from '../../test/kit/tool/run-tool.ts'

const page = 'usage/recipes.md'
const skyhooks = [...filesOn(page).keys()].filter((name) => name.endsWith('.yaml'))
let folder = ''

beforeEach(() => {
  folder = temporaryFolder()
  writeFilesOf(page, folder)
})

test.each(skyhooks)(
  'the Skyhook %s and the packages of the page have neither errors nor warnings together',
  async (name) => {
    const packages = readdirSync(folder).filter((one) => !one.endsWith('.yaml'))
    expect(packages.length).toBeGreaterThan(3)
    const { code, stdout } = await runTool(['validate', ...[name, ...packages].map((one) => join(folder, one))])
    expect([code, stdout.replaceAll(`${folder}/`, '').split('\n').filter(Boolean)]).toEqual([
      0,
      [`${name}: Skyhook ${name.replace('.yaml', '')} is valid`, ...packages.map((one) => `${one}: package is valid`)],
    ])
  },
)

test('the scripts of the page are scripts of bash', async () => {
  const scripts = [...filesOn(page).keys()].filter((name) => name.endsWith('.sh'))
  const read = async (name: string) => await promisify(execFile)('bash', ['-n', join(folder, name)])
  expect(await Promise.all(scripts.map(read))).toEqual(scripts.map(() => ({ stdout: '', stderr: '' })))
})
