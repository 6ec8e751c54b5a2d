import { describe, expect, test } from 'vitest'
import { countsOf, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'
import type { ConfigUpdates } from '../../schemas/rolled-out-configs.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { nextStatus, updatesAfterEdit } from './status.ts'

type ConfigMap = Readonly<Record<string, string>>
const specOf = (
  packages: Readonly<Record<string, readonly [version: string, configMap?: ConfigMap]>>,
): SkyhookSpec => ({
  packages: Object.fromEntries(
    Object.entries(packages).map(([name, [version, configMap]]) => [
      name,
      { version, image: 'x', ...(configMap && { configMap }) },
    ]),
  ),
})

const constructorPackage = (value: string): Readonly<Record<string, readonly [string, ConfigMap]>> =>
  Object.fromEntries([['constructor', ['1', { k: value }]]])

test.each<[string, SkyhookSpec, SkyhookSpec, ConfigUpdates]>([
  ['no keys of an equal spec', specOf({ a: ['1', { k: 'v' }] }), specOf({ a: ['1', { k: 'v' }] }), {}],
  [
    'keys that were added, changed and removed',
    specOf({ a: ['1', { same: '1', gone: '1', other: '1' }] }),
    specOf({ a: ['1', { same: '1', other: '2', more: '1' }] }),
    { a: ['gone', 'more', 'other'] },
  ],
  ['the keys of an emptied configMap', specOf({ a: ['1', { k: 'v' }] }), specOf({ a: ['1'] }), { a: ['k'] }],
  ['no keys of another version', specOf({ a: ['1', { k: 'v' }] }), specOf({ a: ['2', { k: 'w' }] }), {}],
  ['no keys of a new package', specOf({}), specOf({ a: ['1', { k: 'v' }] }), {}],
  ['no keys of a removed package', specOf({ a: ['1', { k: 'v' }] }), specOf({}), {}],
  [
    'the keys of a package whose name every object has',
    specOf(constructorPackage('v')),
    specOf(constructorPackage('w')),
    { constructor: ['k'] },
  ],
  ['no keys of a new package with such a name', specOf({}), specOf(constructorPackage('v')), {}],
])('an edit has %s', (_, before, after, expected) => {
  expect(updatesAfterEdit({}, before, after)).toEqual(expected)
})

test('keys of several edits are collected until the package gets another version or goes', () => {
  const first = specOf({ a: ['1', { k: '1' }], b: ['1', { k: '1' }], c: ['1', { k: '1' }] })
  const second = specOf({ a: ['1', { k: '1', l: '1' }], b: ['2', { k: '2' }] })
  const known = { a: ['k'], b: ['k'], c: ['k'], unknown: ['k'] }
  expect(updatesAfterEdit(known, first, second)).toEqual({ a: ['k', 'l'] })
})

test('packages beyond 16 KiB are left out', () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`${at}-${'k'.repeat(200)}`, 'v']))
  const before = specOf({ a: ['1'], b: ['1'] })
  expect(Object.keys(updatesAfterEdit({}, before, specOf({ a: ['1', many], b: ['1', many] })))).toEqual(['a'])
})

describe('configUpdates in the status', () => {
  const skyhook = skyhookWith({ status: { configUpdates: { tuning: ['a'] } } })
  const updatesOf = (statuses: readonly string[], isSpecPropagating = false) =>
    nextStatus({
      skyhook,
      counts: countsOf(
        skyhook,
        statuses.map((status, at) => nodeReporting(`n${at}`, { status })),
      ),
      finalizer: { action: 'nothing' },
      isSpecPropagating,
      mayFailuresBeOld: false,
      nowMs: 0,
    }).configUpdates

  test.each<[string, string[], boolean, ConfigUpdates | undefined]>([
    ['stay while a node has not picked them up', ['complete', 'waiting'], false, { tuning: ['a'] }],
    ['stay while complete nodes may not have seen the edit', ['complete'], true, { tuning: ['a'] }],
    ['stay while no node is selected', [], false, { tuning: ['a'] }],
    ['go once all nodes are complete', ['complete', 'complete'], false, undefined],
  ])('changed keys %s', (_, statuses, isSpecPropagating, expected) => {
    expect(updatesOf(statuses, isSpecPropagating)).toEqual(expected)
  })
})
