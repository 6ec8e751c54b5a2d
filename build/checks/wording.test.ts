import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { phraseCounts, wordingProblems } from './wording.ts'

const files = {
  'src/kube/a.ts': "/** What is\n * no Node. */\nexport const a = 'The step goes on.'",
  'src/host/b.ts': '// whoever reads it',
  'docs/page.md': 'One\n\nIt is mended, `and begun`.',
}

test('a phrase in a comment, message or page of a clean folder is reported at its line, with what to write', () => {
  expect(wordingProblems(repositoryOf(files), ['src/kube/', 'docs/'])).toEqual([
    'src/kube/a.ts:1: "is no": write is not a, are not, has no (build/lint/phrases.ts)',
    'src/kube/a.ts:3: "goes on": write continues (build/lint/phrases.ts)',
    'docs/page.md:3: "mended": write fix (build/lint/phrases.ts)',
  ])
})

test('phrases are counted by folder, in all folders', () => {
  expect(phraseCounts(repositoryOf(files))).toEqual([
    'src/kube: 2 (goes on 1, is no 1)',
    'src/host: 1 (whoever 1)',
    'docs: 1 (mend 1)',
  ])
})
