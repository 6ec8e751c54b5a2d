import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { committedFile, targets, validatorSource } from './validators.ts'

test.each(targets)('the committed validator of $schema is what the schema compiles to', (target) => {
  expect(readFileSync(committedFile(target), 'utf8')).toBe(validatorSource(target))
})
