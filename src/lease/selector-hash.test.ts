import { describe, expect, test } from 'vitest'
import type { LabelSelector } from '../schemas/kubernetes.ts'
import { selectorHash } from './selector-hash.ts'

describe('selectorHash', () => {
  test.each<[string, LabelSelector | undefined, LabelSelector | undefined]>([
    ['an absent and an empty selector', undefined, {}],
    ['empty parts', {}, { matchLabels: {}, matchExpressions: [] }],
    ['labels in another order', { matchLabels: { a: '1', b: '2' } }, { matchLabels: { b: '2', a: '1' } }],
    [
      'requirements and values in another order',
      {
        matchExpressions: [
          { key: 'a', operator: 'Exists' },
          { key: 'b', operator: 'In', values: ['x', 'y'] },
        ],
      },
      {
        matchExpressions: [
          { key: 'b', operator: 'In', values: ['y', 'x'] },
          { key: 'a', operator: 'Exists', values: [] },
        ],
      },
    ],
  ])('the hash of a selector is the same for %s', (_, one, other) => {
    expect(selectorHash(one)).toBe(selectorHash(other))
    expect(selectorHash(one)).toMatch(/^[0-9a-f]{16}$/)
  })

  test.each<[string, LabelSelector, LabelSelector]>([
    ['a label that must be empty and no label at all', { matchLabels: { a: '' } }, {}],
    ['another value', { matchLabels: { a: '1' } }, { matchLabels: { a: '2' } }],
    [
      'another operator',
      { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
      { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] },
    ],
  ])('the hash of a selector differs for %s', (_, one, other) => {
    expect(selectorHash(one)).not.toBe(selectorHash(other))
  })
})
