import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from './objects.ts'
import { createStore, type Change } from './store.ts'

const object = (name: string, uid: string, resourceVersion: string): KubeObject => ({
  metadata: { name, uid, resourceVersion },
})
const byName = ({ metadata }: KubeObject): string => metadata.name
const describeChanges = (changes: readonly Change<KubeObject>[]): string[] =>
  changes.map(
    ({ type, object: { metadata } }) => `${type} ${metadata.name}/${metadata.uid}@${metadata.resourceVersion}`,
  )

describe('a new list', () => {
  test('a new list reports what vanished unseen, what is new, what changed, and nothing about the rest', () => {
    const store = createStore(byName)
    store.replaceAll([object('a', 'a1', '1'), object('b', 'b1', '1'), object('c', 'c1', '1')])
    expect(
      describeChanges(store.replaceAll([object('b', 'b1', '1'), object('c', 'c1', '2'), object('d', 'd1', '3')])),
    ).toEqual(['deleted a/a1@1', 'modified c/c1@2', 'added d/d1@3'])
  })

  test('a new list reports an object created again under its name as deleted and added', () => {
    const store = createStore(byName)
    store.replaceAll([object('a', 'a1', '1')])
    expect(describeChanges(store.replaceAll([object('a', 'a2', '5')]))).toEqual(['deleted a/a1@1', 'added a/a2@5'])
  })
})

test('a late deletion of an earlier object of a name leaves the present one alone', () => {
  const store = createStore(byName)
  store.set(object('a', 'a2', '5'))
  expect(store.delete(object('a', 'a1', '4'))).toEqual([])
  expect(store.objects.has('a')).toBe(true)
})

test('the reported changes always add up to exactly what the store holds', () => {
  const objectArbitrary = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    uid: fc.constantFrom('1', '2'),
    version: fc.nat(3),
  })
  const stepArbitrary = fc.oneof(
    fc.record({
      do: fc.constant('list' as const),
      of: fc.uniqueArray(objectArbitrary, { selector: ({ name }) => name }),
    }),
    fc.record({ do: fc.constantFrom('set' as const, 'delete' as const), of: objectArbitrary.map((one) => [one]) }),
  )
  fc.assert(
    fc.property(fc.array(stepArbitrary), (steps) => {
      const store = createStore(byName)
      const replay = new Map<string, KubeObject>()
      for (const step of steps) {
        const given = step.of.map(({ name, uid, version }) => object(name, `${name}${uid}`, String(version)))
        const changes =
          step.do === 'list'
            ? store.replaceAll(given)
            : given.flatMap((one) => (step.do === 'set' ? store.set(one) : store.delete(one)))
        for (const { type, key, object: changed } of changes) {
          if (type === 'deleted') expect(replay.delete(key)).toBe(true)
          else {
            expect(replay.has(key)).toBe(type === 'modified')
            replay.set(key, changed)
          }
        }
        expect(replay).toEqual(store.objects)
        if (step.do === 'list')
          expect(
            [...store.objects.values()].toSorted((x, y) => x.metadata.name.localeCompare(y.metadata.name)),
          ).toEqual(given.toSorted((x, y) => x.metadata.name.localeCompare(y.metadata.name)))
      }
    }),
  )
})
