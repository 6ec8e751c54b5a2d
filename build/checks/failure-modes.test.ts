import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { failureModeProblems } from './failure-modes.ts'

const all = Array.from({ length: 34 }, (_, index) => `### ${index + 1}. What fails\n\n* \`a.test.ts\` “it works”\n`)

const problems = (modes: readonly string[]): string[] =>
  failureModeProblems(
    repositoryOf({ 'docs/design/failure-modes.md': modes.join('\n'), 'a.test.ts': "test('it works', () => {})" }),
  )

test('a page with an existing test for each failure mode passes', () => {
  expect(problems(all)).toEqual([])
})

test('a test that has another title by now is found', () => {
  expect(problems(all.with(3, '### 4. What fails\n\n* `a.test.ts` “it worked”\n'))).toEqual([
    'docs/design/failure-modes.md:15: a.test.ts has no test “it worked”',
    'docs/design/failure-modes.md: failure mode 4 has no test',
  ])
})

test('a test file that is gone is found', () => {
  expect(problems([...all, '* `b.test.ts` “it works”'])).toContainEqual(
    expect.stringContaining('the test file b.test.ts does not exist'),
  )
})

test('a missing failure mode and one that is there twice are found', () => {
  expect(problems([...all.slice(1), all[1] as string])).toEqual([
    expect.stringContaining('failure mode 2 is there twice'),
    'docs/design/failure-modes.md: failure mode 1 has no test',
  ])
})
