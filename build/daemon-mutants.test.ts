import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { everyNth, mutantId, mutants } from './daemon-mutants.ts'
import { mutate, repository } from './mutant-tree.ts'

test('there are at least thirty mutants, and their names differ', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30)
  expect(new Set(mutants.map(mutantId)).size).toBe(mutants.length)
})

test.each(mutants)('the text of "$name" occurs once in $file', (mutant) => {
  expect(mutate(mutant)).not.toBe('')
})

// vitest fails without a test, which looks like a mutant that was caught
test('the test files that judge a mutant exist', () => {
  const files = new Set(mutants.flatMap(({ tests }) => tests))
  expect([...files].filter((file) => !existsSync(join(repository, 'src', file)))).toEqual([])
  expect(mutants.filter(({ tests }) => tests.length === 0)).toEqual([])
})

test('a text that is gone is an error', () => {
  const [mutant] = mutants
  if (!mutant) throw new Error('no mutants')
  expect(() => mutate({ ...mutant, search: 'no such text' })).toThrow('0 times')
})

test('a sample keeps each n-th mutant from the first on, and adds as many others', () => {
  const numbers = Array.from({ length: 10 }, (_, index) => index)
  expect(everyNth(numbers, 4, 0)).toEqual([0, 4, 8])
  expect(everyNth(numbers, 4, 9)).toEqual([0, 1, 4, 5, 8, 9])
  expect(everyNth(numbers, 1, 7)).toEqual(numbers)
})
