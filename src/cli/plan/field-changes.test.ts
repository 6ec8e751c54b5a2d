import { expect, test } from 'vitest'
import { fieldChanges } from './field-changes.ts'

const object = (packages: object, rest: object = {}) => ({ metadata: { name: 's' }, spec: { packages, ...rest } })

test('each field that differs is named with both values', () => {
  const before = object(
    { a: { version: '1', image: 'x' } },
    { priority: 1, nodeSelectors: { matchLabels: { 'a/b': '1' } } },
  )
  const after = object({ a: { version: '2', image: 'x' } }, { pause: true, nodeSelectors: { matchLabels: {} } })
  expect(fieldChanges(before, after)).toEqual([
    { field: 'spec.nodeSelectors.matchLabels["a/b"]', change: 'removed', before: '1' },
    { field: 'spec.packages.a.version', change: 'changed', before: '1', after: '2' },
    { field: 'spec.pause', change: 'added', after: true },
    { field: 'spec.priority', change: 'removed', before: 1 },
  ])
})

test('what is new is shown field by field', () => {
  expect(
    fieldChanges(undefined, object({ a: { version: '1', interrupt: { type: 'reboot' }, dependsOn: {} } })),
  ).toEqual([
    { field: 'spec.packages.a.dependsOn', change: 'added' },
    { field: 'spec.packages.a.interrupt.type', change: 'added', after: 'reboot' },
    { field: 'spec.packages.a.version', change: 'added', after: '1' },
  ])
})

test('values of variables and files are never shown, whatever the package is called', () => {
  const secret = { env: [{ name: 'TOKEN', value: 'hunter2' }], configMap: { 'a.sh': 'hunter2', 'b.sh': 'x' } }
  const after = { env: 'hunter2', configMap: { 'a.sh': 'hunter3', 'c"].sh': 'hunter4' } }
  for (const name of ['a', 'a.b', 'a"].b', 'env']) {
    const changes = fieldChanges(object({ [name]: secret }), object({ [name]: after }))
    expect(changes).toHaveLength(4)
    expect(JSON.stringify(changes)).not.toContain('hunter')
  }
})

test('what kubectl and the API server write for themselves is not a change', () => {
  const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' }
  const before = { metadata: { resourceVersion: '1', annotations: lastApplied }, spec: {}, status: { a: 1 } }
  const after = { metadata: { resourceVersion: '2', annotations: { a: 'b' } }, spec: {} }
  expect(fieldChanges(before, after)).toEqual([{ field: 'metadata.annotations.a', change: 'added', after: 'b' }])
})

test('long texts are cut, between characters', () => {
  const changes = fieldChanges(undefined, object({ a: { image: 'x'.repeat(200), version: '\u{1F600}'.repeat(100) } }))
  expect(changes.map(({ after }) => after)).toEqual([`${'x'.repeat(80)}…`, `${'\u{1F600}'.repeat(40)}…`])
  const [change] = fieldChanges(undefined, object({ a: { image: `x${'\u{1F600}'.repeat(100)}` } }))
  expect(change?.after).toBe(`x${'\u{1F600}'.repeat(39)}\uFFFD…`)
})
