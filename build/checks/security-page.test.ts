import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { securityPageProblems } from './security-page.ts'

const problems = (page: string): number[] =>
  securityPageProblems(repositoryOf({ 'docs/usage/security.md': page })).map((one) => Number(one.split(':')[1]))

const tried = '(`test/cluster/attacks.test.ts`)'

test.each<[string, string, number[]]>([
  ['a paragraph that promises', 'First.\n\nOnly root\nreads it.', [3]],
  ['an item below "It cannot", whatever its words', '**It cannot**\n\n* `patch nodes`: touch a Node.', [3]],
  ['one item of two', `* Never written.\n  Not at all.\n* Never read ${tried}.`, [1]],
  ['a table', 'They grant this:\n\n| What | Who |\n|---|---|\n| files | only root |', [1]],
])('%s without a test is found', (_, page, lines) => {
  expect(problems(page)).toEqual(lines)
})

test.each<[string, string]>([
  ['a paragraph with its test', `Only root\nreads it ${tried}.`],
  ['what was not tried', 'Only root reads it (not tried).'],
  ['an item below "It cannot" with its test', `**It cannot**\n\n* touch another Node ${tried}.`],
  ['an item below "It can"', '**It cannot**\n\n**It can**\n\n* read all.'],
  ['a table below the test', `Tried in ${tried}:\n\n| What | Who |\n|---|---|\n| files | only root |`],
  ['headings and code', '## Only root\n\n```sh\n# only root\n```'],
])('%s is not a problem', (_, page) => {
  expect(problems(page)).toEqual([])
})
