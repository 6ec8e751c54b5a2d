import { expect, test } from 'vitest'
import { applyPatch, merged } from './three-way-merge.ts'

/** Last applied, file, object, patch, object afterwards. */
const rows: readonly [string, object | undefined, object, object, object, object][] = [
  ['sets what the file says', undefined, { a: 1 }, { b: 2 }, { a: 1 }, { a: 1, b: 2 }],
  ['leaves what only the object has', { a: 1 }, { a: 1 }, { a: 1, b: 2 }, {}, { a: 1, b: 2 }],
  ['removes what the file had before', { a: 1, b: 2 }, { a: 1 }, { a: 1, b: 2 }, { b: null }, { a: 1 }],
  [
    'removes what every object inherits by name',
    { p: { constructor: 1 } },
    { p: {} },
    { p: { constructor: 1 } },
    { p: { constructor: null } },
    { p: {} },
  ],
  ['removes nothing twice', { a: 1, b: 2 }, { a: 1 }, { a: 1 }, {}, { a: 1 }],
  ['removes nothing without an earlier apply', undefined, { a: 1 }, { a: 1, b: 2 }, {}, { a: 1, b: 2 }],
  [
    'works in depth',
    { p: { x: { v: 1 }, y: { v: 1 } } },
    { p: { x: { v: 2 } } },
    { p: { x: { v: 1, w: 1 }, y: { v: 1 }, z: {} } },
    { p: { x: { v: 2 }, y: null } },
    { p: { x: { v: 2, w: 1 }, z: {} } },
  ],
  ['replaces lists', { l: [1, 2] }, { l: [2] }, { l: [1, 2] }, { l: [2] }, { l: [2] }],
  ['takes null for a removal', { a: 1 }, { a: null }, { a: 1 }, { a: null }, {}],
  ['takes null for nothing where nothing is', undefined, { a: null }, {}, {}, {}],
  [
    'keeps the annotations of others where no file had any, and removes those that the last one had',
    { metadata: { name: 's', annotations: { old: '1' } } },
    { metadata: { name: 's' } },
    { metadata: { name: 's', annotations: { old: '1', other: '2' } } },
    { metadata: { annotations: { old: null } } },
    { metadata: { name: 's', annotations: { other: '2' } } },
  ],
  [
    'sends nothing for a file that is applied again, whose annotation says that it had no annotations',
    { metadata: { name: 's', annotations: {} } },
    { metadata: { name: 's' } },
    { metadata: { name: 's', annotations: { other: '2' } } },
    {},
    { metadata: { name: 's', annotations: { other: '2' } } },
  ],
  ['replaces an object by a value', { a: { b: 1 } }, { a: 2 }, { a: { b: 1 } }, { a: 2 }, { a: 2 }],
]

test.each(rows)('an apply %s', (_, lastApplied, desired, present, patch, after) => {
  const found = applyPatch(lastApplied as never, desired as never, present as never)
  expect(found).toEqual(patch)
  expect(merged(present, found)).toEqual(after)
})
