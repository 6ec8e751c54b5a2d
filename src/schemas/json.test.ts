import { expect, test } from 'vitest'
import { isEqual, ownValue } from './json.ts'

const journal = { v: 1, skyhooks: { a: { packages: ['x', { rev: 2 }], none: null } } }

test('two copies of one value are equal', () => {
  expect(isEqual(journal, structuredClone(journal))).toBe(true)
  expect(isEqual({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true)
})

test('values that differ anywhere are not equal', () => {
  const others = [
    { ...journal, v: 2 },
    { ...journal, more: 1 },
    { v: 1 },
    { ...journal, skyhooks: { a: { packages: ['x', { rev: 3 }], none: null } } },
    { ...journal, skyhooks: { a: { packages: ['x'], none: null } } },
    { ...journal, skyhooks: { a: { packages: ['x', { rev: 2 }], none: {} } } },
    { ...journal, skyhooks: [] },
  ]
  for (const other of others) {
    expect(isEqual(journal, other)).toBe(false)
    expect(isEqual(other, journal)).toBe(false)
  }
})

test('a field that is undefined is not one that is absent', () => {
  expect(isEqual({ a: undefined }, {})).toBe(false)
  expect(isEqual({ a: undefined, b: 1 }, { b: 1, c: undefined })).toBe(false)
  expect(isEqual({ a: undefined }, { a: undefined })).toBe(true)
})

test('ownValue finds what the object has itself, and nothing that it inherits', () => {
  expect(ownValue({ constructor: 'x' }, 'constructor')).toBe('x')
  expect(ownValue({ a: 'x' }, 'constructor')).toBeUndefined()
  expect(ownValue(undefined, 'a')).toBeUndefined()
})
