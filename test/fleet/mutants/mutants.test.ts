import { expect, test } from 'vitest'
import { mutatedFiles, replaceText } from '../../../build/mutant-tree.ts'
import { mutants } from './all.ts'
import { keptPlan } from './kept-plans.ts'

test('there are at least twenty-five deliberate bugs, and their names differ', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(25)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

test.each(mutants)('each text of "$name" occurs once in its file', ({ name, changes }) => {
  expect(mutatedFiles(name, changes).size).toBeGreaterThan(0)
})

test.each(mutants)('a plan that shows "$name" is kept', (mutant) => {
  expect(keptPlan(mutant)?.nodes.length).toBeGreaterThan(0)
})

test('a text that the sources no longer have is an error that names the bug and the file', () => {
  const gone = { file: 'src/lease/rule.ts', search: 'no such text', replace: '' }
  expect(() => replaceText('a bug', gone)).toThrow('mutant "a bug": src/lease/rule.ts contains its text 0 times')
})
