import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { everyNth, mutants, trialId, trialsOf } from './catalogue.ts'
import { keptPlan } from './kept-plans.ts'
import { mutatedFiles, repository } from './tree.ts'

const trials = trialsOf(mutants)

test('the names of mutants differ, and those of their trials', () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  expect(new Set(trials.map(trialId)).size).toBe(trials.length)
})

test('each tier has its mutants, and each mutant a tier', () => {
  const count = Object.groupBy(trials, ({ by }) => by.tier)
  expect(count.unit?.length).toBeGreaterThanOrEqual(100)
  expect(count.model?.length).toBeGreaterThanOrEqual(30)
  expect(count.fleet?.length).toBeGreaterThanOrEqual(49)
  expect(mutants.filter(({ caughtBy }) => caughtBy.length === 0)).toEqual([])
})

test.each(mutants)('each text of "$name" occurs once in its file', (mutant) => {
  expect(mutatedFiles(mutant).size).toBeGreaterThan(0)
})

// vitest fails without a test, which looks like a mutant that was caught
test('the test files that judge a mutant exist', () => {
  const files = trials.flatMap(({ by }) => (by.tier === 'unit' ? by.tests : by.tier === 'model' ? [by.test] : []))
  expect(files.filter((file) => !existsSync(join(repository, file)))).toEqual([])
})

test('a plan is kept for each mutant that a fleet must show', () => {
  const without = trials.filter(({ by }) => by.tier === 'fleet' && (keptPlan(by)?.nodes.length ?? 0) === 0)
  expect(without.map(trialId)).toEqual([])
})

test('a text that the sources no longer have is an error that names the mutant and the file', () => {
  const gone = { file: 'src/lease/rule.ts', search: 'no such text', replace: '' }
  expect(() => mutatedFiles({ name: 'a bug', edits: [gone], caughtBy: [] })).toThrow(
    'mutant "a bug": src/lease/rule.ts contains its text 0 times',
  )
})

test('a sample keeps each n-th mutant from the first on, and adds as many others', () => {
  const numbers = Array.from({ length: 10 }, (_, index) => index)
  expect(everyNth(numbers, 4, 0)).toEqual([0, 4, 8])
  expect(everyNth(numbers, 4, 9)).toEqual([0, 1, 4, 5, 8, 9])
  expect(everyNth(numbers, 1, 7)).toEqual(numbers)
})
