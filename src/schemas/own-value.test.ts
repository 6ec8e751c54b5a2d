import { expect, test } from 'vitest'
import { ownValue } from './own-value.ts'

test('ownValue finds what the object has itself, and nothing that it inherits', () => {
  expect(ownValue({ constructor: 'x' }, 'constructor')).toBe('x')
  expect(ownValue({ a: 'x' }, 'constructor')).toBeUndefined()
  expect(ownValue(undefined, 'a')).toBeUndefined()
})
