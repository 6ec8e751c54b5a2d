import { expect, test } from 'vitest'
import { mutants, mutate } from './daemon-mutants.ts'

test('there are at least thirty mutants, and their names differ', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30)
  expect(new Set(mutants.map(({ name, file }) => `${file} ${name}`)).size).toBe(mutants.length)
})

test.each(mutants)('the text of "$name" occurs once in $file', (mutant) => {
  expect(mutate(mutant)).not.toBe('')
})

test('a text that is gone is an error', () => {
  const [mutant] = mutants
  if (!mutant) throw new Error('no mutants')
  expect(() => mutate({ ...mutant, search: 'no such text' })).toThrow('0 times')
})
