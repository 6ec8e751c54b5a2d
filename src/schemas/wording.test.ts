import { expect, test } from 'vitest'
import { counted, named, someOf } from './wording.ts'

test.each([
  [[], 2, '', ''],
  [['a', 'b'], 2, 'a, b', 'a, b'],
  [['a', 'b', 'c'], 2, 'a, b and 1 more', 'a, b, …'],
  [['a', 'b', 'c', 'd'], 1, 'a and 3 more', 'a, …'],
])('the names %j are said, at most %d of them', (names, max, withNumber, without) => {
  expect(named(names, max)).toBe(withNumber)
  expect(someOf(names, max)).toBe(without)
})

test.each([
  [0, '0 batches'],
  [1, '1 batch'],
  [2, '2 batches'],
])('%d things are counted as %s', (count, text) => {
  expect(counted(count, 'batch', 'batches')).toBe(text)
})

test('most things need no word of their own for many', () => {
  expect([1, 2].map((count) => counted(count, 'node'))).toEqual(['1 node', '2 nodes'])
})
