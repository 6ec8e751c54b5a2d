import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeRegistry, startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { runTool } from '../../../test/kit/tool/run-tool.ts'

const source = join(import.meta.dirname, '../../../test/fixtures/packages/shellscript')
let registry: FakeRegistry

beforeEach(async () => {
  registry = await startFakeRegistry({})
})
afterEach(async () => {
  await registry.close()
})

test('a pushed image is checked for all its architectures', async () => {
  const name = `${registry.host}/team/shellscript`
  const pushed = await runTool(['package', 'push', source, `${name}:9.9.9`, '--plain-http'])
  expect(pushed).toMatchObject({ code: 0, stderr: expect.stringContaining('9.9.9 differs') as string })
  expect(await runTool(['validate', `${name}:9.9.9`, '--plain-http'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^warning: .*\[tag-version\]\n.*\n.*: package is valid \(0 errors, 1 warning\)\n$/,
    ) as string,
  })
  const one = await runTool(['package', 'push', source, name, '--plain-http', '--arch', 'arm64'])
  expect(one).toMatchObject({ code: 0, stderr: '' })
  expect(await runTool(['validate', one.stdout.trim(), '--plain-http'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/: package is valid\n$/) as string,
  })
})

test('a missing image is an error that names it', async () => {
  expect(await runTool(['validate', `${registry.host}/team/gone:1`, '--plain-http'])).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('[image/not-found]') as string,
  })
})
