import { expect, test } from 'vitest'
import { readySeen } from './ready-seen.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

const otherWork = sampleSpec({ packages: { a: { version: '2.0.0', image: 'other' } } })

/** Both hosts have read the Skyhook, and it is edited to other work a while later. */
async function editedWorld(): Promise<World> {
  const world = sampleWorld(readySeen, { hosts: 2 })
  for (const name of ['n1', 'n2']) world.readSkyhook(name)
  await world.pass(121) // labels are not news any more
  world.editSkyhook({ spec: otherWork })
  return world
}

const setReady = (world: World): void => {
  const condition = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
  const observedGeneration = world.generation()
  world.setStatus({ conditions: [{ ...condition, observedGeneration, reason: 'Complete', message: '' }] })
}

test('a Skyhook may be Ready at once for a spec that each agent has read', async () => {
  const world = await editedWorld()
  for (const name of ['n1', 'n2']) world.readSkyhook(name)
  setReady(world)
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('a Skyhook that is Ready for a spec that one agent has not read is found', async () => {
  const world = await editedWorld()
  world.readSkyhook('n1')
  setReady(world)
  expect(world.violations).toEqual(['s is Ready for generation 2, and n2 has read generation 1'])
})

test.each<[string, (world: World) => void | Promise<void>]>([
  ['a second later', (world) => world.pass(1)],
  ['where it is not selected', (world) => world.label('n2', { pool: 'y' })],
  ['where a label may have selected it a moment ago', (world) => world.label('n2', { rack: '1' })],
  ['after a restored etcd', (world) => world.restore(world.backUp())],
])('a Skyhook may be Ready for a spec that one agent has not read: %s', async (_, act) => {
  const world = await editedWorld()
  world.readSkyhook('n1')
  await act(world)
  setReady(world)
  expect(world.violations).toEqual([])
})

test('an edit that asks for no other work has to be read by nobody', async () => {
  const world = sampleWorld(readySeen, { hosts: 2 })
  for (const name of ['n1', 'n2']) world.readSkyhook(name)
  await world.pass(121)
  world.editSkyhook({ spec: { priority: 7 } })
  setReady(world)
  expect([world.violations, world.checks()]).toEqual([[], 2])
})
