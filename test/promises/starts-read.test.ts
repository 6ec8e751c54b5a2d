import { expect, test } from 'vitest'
import { sampleWorld } from './sample-world.ts'
import { startsRead } from './starts-read.ts'

function started() {
  const world = sampleWorld(startsRead)
  const skyhookUid = world.server.object('skyhooks', undefined, 's')?.metadata.uid
  return { ...world, begin: (name: string) => world.run(name, 'apply', { skyhookUid, generation: world.generation() }) }
}
const edit = { spec: { interruptionBudget: { count: 0 } } }

test('work of the spec that was read after the grant is as promised', () => {
  const world = started()
  world.take('n1')
  world.begin('n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('work of a spec that changed after the last read is found', () => {
  const world = started()
  world.take('n1')
  world.editSkyhook(edit)
  world.begin('n1')
  expect(world.violations).toEqual([
    'n1 starts apply of s for generation 2, and its agent has read generation 1 since its slot was granted',
  ])
})

test('work that starts without a read since the grant is found', () => {
  const world = started()
  world.readSkyhook('n1')
  world.create('n1')
  world.begin('n1')
  expect(world.violations).toEqual([expect.stringContaining('has read none since')])
})

test.each<[string, (world: ReturnType<typeof started>) => void]>([
  ['after its first step', (world) => world.run('n1', 'apply')],
  ['after its cordon', (world) => world.cordon('n1')],
  [
    'after its journal was written, which may say that it has begun',
    (world) => world.tell('n1', { event: 'effect', process: 1, name: 'fsync:journal' }),
  ],
  [
    'after an agent ended, which may have begun',
    (world) => world.tell('n1', { event: 'agentEnded', process: 1, kind: 'agent' }),
  ],
  ['after a restored etcd', (world) => world.restore(world.backUp())],
])('work goes on with a spec that nobody asked about %s', (_, act) => {
  const world = started()
  world.take('n1')
  act(world)
  world.editSkyhook(edit)
  world.begin('n1')
  expect(world.violations).toEqual([])
})

test('work under a recovery slot is under way', () => {
  const world = started()
  world.recover('n1')
  world.begin('n1')
  expect(world.violations).toEqual([])
})

test('work under a slot from after a restored etcd may be of a generation that the API server has forgotten', () => {
  const world = started()
  const older = world.backUp()
  world.editSkyhook(edit)
  const generation = world.generation()
  world.restore(older)
  world.take('n1')
  world.run('n1', 'uninstall', {
    skyhookUid: world.server.object('skyhooks', undefined, 's')?.metadata.uid,
    generation,
  })
  expect([generation, world.violations]).toEqual([2, []])
})

test('a journal that was written after the edit excuses nothing', () => {
  const world = started()
  world.take('n1')
  world.editSkyhook(edit)
  world.tell('n1', { event: 'effect', process: 1, name: 'fsync:journal' })
  world.begin('n1')
  expect(world.violations).toHaveLength(1)
})
