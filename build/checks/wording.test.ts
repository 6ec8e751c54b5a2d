import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { wordingProblems } from './wording.ts'

test('a phrase in a comment, message or page is reported at its line, with what to write', () => {
  const files = {
    'src/kube/a.ts': "/** What is\n * no Node. */\nexport const a = 'The step goes on.'",
    'docs/page.md': 'One\n\nIt is mended, `and begun`.',
  }
  expect(wordingProblems(repositoryOf(files))).toEqual([
    'src/kube/a.ts:1: "is no": write is not a, are not, has no (build/lint/phrases.ts)',
    'src/kube/a.ts:3: "goes on": write continues (build/lint/phrases.ts)',
    'docs/page.md:3: "mended": write fix (build/lint/phrases.ts)',
  ])
})

test('copies, and files with a reason to keep phrases, are not checked', () => {
  const copies = ['src/schemas/generated/a.ts', 'chart/crd-files/a.yaml', 'src/cli/commands/goldens/a.txt']
  const files = [...copies, 'docs/style.md', 'LICENSE'].map((path) => [path, '// the step goes on'])
  expect(wordingProblems(repositoryOf(Object.fromEntries(files) as Record<string, string>))).toEqual([])
})
