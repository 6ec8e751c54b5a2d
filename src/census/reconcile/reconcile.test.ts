import { expect, test } from 'vitest'
import type { SpecVersion } from '../../schemas/annotations.ts'
import { haveAllCompleted } from './reconcile.ts'

const by = (generation: number, uid = 'u'): SpecVersion => ({ uid, generation })

test.each<[string, boolean, readonly (SpecVersion | undefined)[]]>([
  ['all by this one', true, [by(3), by(3)]],
  ['one by a later one that asks for the same', true, [by(3), by(4)]],
  ['one by an earlier one', false, [by(3), by(2)]],
  ['one of an older agent', false, [by(3), undefined]],
  ['one by an earlier Skyhook of this name', false, [by(3), by(9, 'other')]],
  ['no node', false, []],
])('all nodes have completed a spec: %s', (_, expected, versions) => {
  const nodes = versions.map((completedBy) => (completedBy ? { completedBy } : {}))
  expect(haveAllCompleted(nodes, by(3))).toBe(expected)
})
