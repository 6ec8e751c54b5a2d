import { expect, test } from 'vitest'
import { completeOnce } from './complete-once.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

const again = ['a 1.0.0 apply apply.sh of s succeeds a second time on n1 without a cause']

test('a step that succeeds a second time is found', async () => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 200)
  await runLater(world, 10)
  expect(world.violations).toEqual(again)
})

test('the same step succeeds once on each host', () => {
  const world = sampleWorld(completeOnce)
  world.run('n1', 'apply')
  world.run('n2', 'apply')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

type World = ReturnType<typeof sampleWorld>
/** Everything that has started is long ago, and the world is `seconds` older. */
const runLater = async (world: World, seconds: number): Promise<void> => {
  await world.pass(seconds)
  world.run('n1', 'apply', { startedAtMs: world.world.clock.monotonicMs() })
}

const newPackages = sampleSpec({ packages: { a: { version: '1.0.0', image: 'other' } } })

test.each<[string, (world: World) => void]>([
  ['a change of its package', (world) => world.editSkyhook({ spec: newPackages })],
  ['a failed check', (world) => world.run('n1', 'apply-check', { code: 1 })],
  ['a lost record', (world) => world.run('n1', 'apply-check', { isRecorded: false })],
  ['a request of its package', (world) => world.tell('n1', { event: 'runRequested', skyhook: 's', package: 'a' })],
  ['a new disk', (world) => world.tell('n1', { event: 'wiped' })],
  ['a power cut', (world) => world.tell('n1', { event: 'wentDown', bootId: 'b', how: 'power cut' })],
  ['a cleared state', (world) => world.annotate('n1', { 'skyhook.nvidia.com/nodeState_s': 'x' }, 'admin')],
  ['a step that died with the host', (world) => world.tell('n1', { event: 'stepLost', step: world.step('apply') })],
])('a step may succeed again after %s', async (_, cause) => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 200)
  await world.pass(200)
  cause(world)
  await runLater(world, 130)
  expect(world.violations).toEqual([])
  await runLater(world, 200)
  expect(world.violations).toEqual(again)
})

test('a step that began before an edit may run again after it', async () => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 200)
  world.editSkyhook({ spec: newPackages })
  await runLater(world, 60)
  await runLater(world, 10)
  expect(world.violations).toEqual([])
})

test('an edit of anything but packages is no reason to repeat a step', async () => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 200)
  world.editSkyhook({ spec: sampleSpec({ priority: 7 }) })
  await runLater(world, 10)
  expect(world.violations).toEqual(again)
})

test('a Skyhook that was just created is no reason to repeat a step', async () => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 1)
  await runLater(world, 10)
  expect(world.violations).toEqual(again)
})

test('a shutdown in order is no reason to repeat a step', async () => {
  const world = sampleWorld(completeOnce)
  await runLater(world, 200)
  world.tell('n1', { event: 'wentDown', bootId: 'b', how: 'shutdown' })
  await runLater(world, 10)
  expect(world.violations).toEqual(again)
})
