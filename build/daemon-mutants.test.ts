import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutants } from './daemon-mutants.ts'
import { mutate, repository } from './mutant-tree.ts'

test('there are at least thirty mutants, and their names differ', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30)
  expect(new Set(mutants.map(({ name, file }) => `${file} ${name}`)).size).toBe(mutants.length)
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
