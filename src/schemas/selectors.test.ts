import { describe, expect, test } from 'vitest'
import type { LabelSelector, Toleration } from './kubernetes.ts'
import { isEmptySelector, matchesGlob, selects, tolerates } from './selectors.ts'

const labels = { pool: 'gpu', zone: 'a' }

describe('selects', () => {
  test.each<[string, LabelSelector | undefined, boolean]>([
    ['absent', undefined, true],
    ['empty', {}, true],
    ['equal label', { matchLabels: { pool: 'gpu' } }, true],
    ['other value', { matchLabels: { pool: 'cpu' } }, false],
    ['In', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }, true],
    ['In without the label', { matchExpressions: [{ key: 'rack', operator: 'In', values: ['a'] }] }, false],
    ['NotIn without the label', { matchExpressions: [{ key: 'rack', operator: 'NotIn', values: ['a'] }] }, true],
    ['NotIn', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }, false],
    ['Exists', { matchExpressions: [{ key: 'zone', operator: 'Exists' }] }, true],
    ['DoesNotExist', { matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] }, false],
    ['all must hold', { matchLabels: { pool: 'gpu' }, matchExpressions: [{ key: 'rack', operator: 'Exists' }] }, false],
  ])('a label selector matches or not: %s', (_, selector, expected) => expect(selects(selector, labels)).toBe(expected))

  test('a label selector that names nothing is empty', () => {
    expect(isEmptySelector({ matchLabels: {}, matchExpressions: [] })).toBe(true)
    expect(isEmptySelector({ matchLabels: { a: 'b' } })).toBe(false)
  })
})

describe('tolerates', () => {
  const taint = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' }
  test.each<[string, Toleration[], boolean]>([
    ['none', [], false],
    ['Exists by key', [{ key: 'nvidia.com/gpu', operator: 'Exists' }], true],
    ['Exists without a key tolerates everything', [{ operator: 'Exists' }], true],
    ['Equal is the default', [{ key: 'nvidia.com/gpu', value: 'present' }], true],
    ['other value', [{ key: 'nvidia.com/gpu', value: 'absent' }], false],
    ['other effect', [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoExecute' }], false],
    ['no key and Equal tolerates nothing', [{ value: 'present' }], false],
  ])('a toleration applies or not: %s', (_, tolerations, expected) =>
    expect(tolerates(tolerations, taint)).toBe(expected),
  )
})

test.each([
  ['*', 'anything.sh', true],
  ['*', 'a/b', false],
  ['*.sh', 'apply.sh', true],
  ['*.sh', 'apply.conf', false],
  ['apply.sh', 'applyxsh', false],
  ['?.conf', 'a.conf', true],
  ['[ab].conf', 'b.conf', true],
  ['[^ab].conf', 'b.conf', false],
  ['[a-c]*', 'cat', true],
  ['\\*', '*', true],
  ['\\*', 'x', false],
  ['[', '[', false],
  ['a\\', 'a', false],
])('the pattern %s on %s matches: %s', (pattern, name, expected) => expect(matchesGlob(pattern, name)).toBe(expected))
