import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { systemRandom } from './platform/system-clock.ts'
import { runValidate } from './validate.ts'

const fixtures = join(import.meta.dirname, '../../test/fixtures/packages')
let folder = ''

beforeEach(() => (folder = temporaryFolder()))

async function validate(...parameters: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', '']
  const code = await runValidate(parameters, {
    random: systemRandom,
    workingDirectory: fixtures,
    temporaryFolder: folder,
    stdout: (text) => (stdout += text),
    stderr: (text) => (stderr += text),
  })
  return { code, stdout, stderr }
}

test('skyhookd validate reports a package and exits by its errors', async () => {
  expect(await validate('shellscript')).toEqual({ code: 0, stdout: 'shellscript: package is valid\n', stderr: '' })
  const invalid = await validate('missing-step', '-o', 'github')
  expect(invalid).toMatchObject({ code: 1, stderr: '' })
  expect(invalid.stdout).toMatch(/^::error file=missing-step\/config\.json,title=step-file\/missing::\/modes\//)
  expect(JSON.parse((await validate(join(fixtures, 'missing-step'), '--output', 'json')).stdout)).toMatchObject({
    kind: 'FindingList',
    valid: false,
  })
})

test('skyhookd validate says what it cannot validate', async () => {
  expect(await validate('gone')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('gone: no such file') as string,
  })
  expect(await validate('journal/README.md')).toMatchObject({ code: 2, stdout: '' })
})

test.each([
  [[]],
  [['--help']],
  [['shellscript', '-o', 'xml']],
  [['shellscript', 'journal']],
  [['a', '-o', 'json', 'b']],
])('skyhookd validate %j shows how it is used', async (parameters) => {
  expect(await validate(...parameters)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^usage: skyhookd validate PATH/) as string,
  })
})
