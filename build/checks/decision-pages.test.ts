import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { decisionPageProblems } from './decision-pages.ts'

const whole = '# A\n\n*2026-11-20 · `src`*\n\n**Decision.** One.\n\n**Rejected.** Two.\n'
const problems = (text: string): string[] =>
  decisionPageProblems(repositoryOf({ 'docs/design/decisions/a.md': text, 'docs/design/other.md': '' }))

test('a decision page with date, decision and rejected is not reported', () => {
  expect(problems(whole)).toEqual([])
})

test.each([
  ['has 81 lines', whole + '\n'.repeat(73) + 'x', 'has 81 lines, more than 80: move figures and history beside it'],
  ['lacks its date', whole.replace(/\*2026.*\*/, ''), 'lacks its date'],
  ['lacks its decision', whole.replace('**Decision.**', ''), 'lacks the paragraph **Decision.**'],
  ['has nothing that was rejected', whole.replace('Rejected', ''), 'does not say what was rejected'],
])('a decision page that %s is reported', (_, text, problem) => {
  expect(problems(text)).toEqual([`docs/design/decisions/a.md: ${problem}`])
})
