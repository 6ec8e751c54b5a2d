import { expect, test } from 'vitest'
import { missingFiles } from './named-files.ts'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'

const other = { 'src/kube/watch.ts': '', 'docs/usage/install.md': '', 'test/model/admission.test.ts': '' }

const missing = (line: string): string[] => missingFiles(repositoryOf({ ...other, 'src/host/some.ts': line }))

test.each([
  ['a file that is gone', '// as in reflector.ts', 'reflector.ts'],
  ['a path that is gone', '/** See stages/inputs.ts. */', 'stages/inputs.ts'],
  ['a page that is gone', '// docs/usage/remove.md says', 'docs/usage/remove.md'],
  ['a folder that is gone', '// everything in src/rooms', 'src/rooms'],
  ['a test folder that is gone', '// searched in test/search', 'test/search'],
  ['an import that is gone', "import { a } from '../kube/list.ts'", '../kube/list.ts'],
])('a check finds %s', (_, line, name) => {
  expect(missing(line)).toEqual([`src/host/some.ts:1: ${name} does not exist`])
})

test.each([
  '// as in watch.ts, kube/watch.ts and src/kube',
  '// docs/usage/install.md. And admission.test.ts in test/model.',
  "import { a } from '../kube/watch.ts'",
  "const steps = ['run.sh', 'skyhook_dir/run.sh', 'test/journal']",
  '// https://example.com/src/other.ts and **/*.test.ts and /var/lib/x.ts',
])('a check finds nothing wrong in %s', (line) => {
  expect(missing(line)).toEqual([])
})
