import { expect, test } from 'vitest'
import { completeOnce } from './complete-once.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

const again = ['a 1.0.0 apply apply.sh of s succeeds a second time on n1 without a cause']

test('a step that succeeds a second time is found', () => {
  const world = sampleWorld(completeOnce)
  world.run('n1', 'apply')
  world.run('n1', 'apply')
  expect(world.violations).toEqual(again)
})

test('the same step succeeds once on each host', () => {
  const world = sampleWorld(completeOnce)
  world.run('n1', 'apply')
  world.run('n2', 'apply')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

type World = ReturnType<typeof sampleWorld>

test.each<[string, (world: World) => void]>([
  ['a new spec', (world) => world.editSkyhook({ spec: sampleSpec({ priority: 7 }) })],
  ['a failed check', (world) => world.run('n1', 'apply-check', { code: 1 })],
  ['a lost record', (world) => world.run('n1', 'apply-check', { isRecorded: false })],
  ['a new disk', (world) => world.tell('n1', { event: 'wiped' })],
  ['a power cut', (world) => world.tell('n1', { event: 'wentDown', bootId: 'b', how: 'power cut' })],
  ['a cleared state', (world) => world.annotate('n1', { 'skyhook.nvidia.com/nodeState_s': 'x' }, 'admin')],
  ['a step that died with the host', (world) => world.tell('n1', { event: 'stepLost', step: world.step('apply') })],
])('a step may succeed again after %s', (_, cause) => {
  const world = sampleWorld(completeOnce)
  world.run('n1', 'apply')
  cause(world)
  world.run('n1', 'apply')
  expect(world.violations).toEqual([])
  world.run('n1', 'apply')
  expect(world.violations).toEqual(again)
})

test('a shutdown in order is no reason to repeat a step', () => {
  const world = sampleWorld(completeOnce)
  world.run('n1', 'apply')
  world.tell('n1', { event: 'wentDown', bootId: 'b', how: 'shutdown' })
  world.run('n1', 'apply')
  expect(world.violations).toEqual(again)
})
