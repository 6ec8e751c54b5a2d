import { expect, test } from 'vitest'
import { controlPlaneScope } from '../../src/lease/names.ts'
import { controlPlane } from './control-plane.ts'
import { sampleWorld } from './sample-world.ts'

const label = { 'node-role.kubernetes.io/control-plane': '' }

test('two cordoned control-plane nodes are too many', () => {
  const world = sampleWorld(controlPlane)
  for (const name of ['n1', 'n2']) {
    world.label(name, label)
    world.cordon(name)
  }
  expect(world.violations).toEqual(['control-plane node n2 is cordoned while n1 is'])
})

test('control-plane nodes may be cordoned one after the other', () => {
  const world = sampleWorld(controlPlane)
  for (const name of ['n1', 'n2']) {
    world.label(name, label)
    world.cordon(name)
    world.uncordon(name)
  }
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('workers do not count beside a control-plane node', () => {
  const world = sampleWorld(controlPlane)
  world.label('n1', label)
  world.cordon('n1')
  world.cordon('n2')
  expect(world.violations).toEqual([])
})

test('a cordoned node that gets the label breaks nothing', () => {
  const world = sampleWorld(controlPlane)
  world.cordon('n1')
  world.label('n2', label)
  world.cordon('n2')
  world.label('n1', label)
  expect(world.violations).toEqual([])
})

test.each([
  [
    'counts for nodes that list the slots after it has its own',
    'after',
    ['control-plane node n2 is cordoned while n1 is'],
  ],
  ['does not count for a node that listed the slots before', 'before', []],
] as const)('a cordoned node that gets the label %s', (_, listed, violations) => {
  const world = sampleWorld(controlPlane)
  world.label('n2', label)
  world.cordon('n1')
  const getsLabel = (): void => {
    world.label('n1', label)
    world.recover('n1', world.uidOf('n1'), controlPlaneScope)
  }
  if (listed === 'after') getsLabel()
  world.listSlots('n2')
  world.recover('n2', world.uidOf('n2'), controlPlaneScope)
  if (listed === 'before') getsLabel()
  world.cordon('n2')
  expect(world.violations).toEqual(violations)
})

test('a node whose Node a person deleted may be cordoned again beside another', () => {
  const world = sampleWorld(controlPlane)
  for (const name of ['n1', 'n2']) world.label(name, label)
  world.cordon('n1')
  world.deleteNode('n1')
  world.cordon('n2')
  world.register('n1', label)
  world.cordon('n1')
  expect(world.violations).toEqual([])
})

test('a node that lost its Node goes on under a recovery slot beside another', () => {
  const world = sampleWorld(controlPlane)
  for (const name of ['n1', 'n2']) world.label(name, label)
  world.cordon('n1')
  world.deleteNode('n1')
  world.cordon('n2')
  world.register('n1', label)
  world.recover('n1', world.uidOf('n1'), controlPlaneScope)
  world.cordon('n1')
  expect(world.violations).toEqual([])
})

test('a recovery slot of a node that lost nothing does not let it be cordoned beside another', () => {
  const world = sampleWorld(controlPlane)
  for (const name of ['n1', 'n2']) world.label(name, label)
  world.cordon('n2')
  world.recover('n1', world.uidOf('n1'), controlPlaneScope)
  world.cordon('n1')
  expect(world.violations).toEqual(['control-plane node n1 is cordoned while n2 is'])
})
