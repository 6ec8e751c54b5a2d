import { expect, test } from 'vitest'
import { readyTrue } from './ready-true.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

async function settledWorld(): Promise<World> {
  const world = sampleWorld(readyTrue, { hosts: 2 })
  await world.pass(21) // registrations are not news any more
  return world
}

const setReady = (world: World, observedGeneration = world.generation()): void => {
  const condition = { type: 'Ready', status: 'True', observedGeneration, lastTransitionTime: '2026-01-01T00:00:00Z' }
  world.setStatus({ conditions: [{ ...condition, reason: 'Complete', message: '' }] })
}

test('a Skyhook is Ready when all hosts have finished', async () => {
  const world = await settledWorld()
  for (const name of ['n1', 'n2']) world.complete(name)
  setReady(world)
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('a Skyhook that is Ready before a host has finished is found', async () => {
  const world = await settledWorld()
  world.complete('n1')
  world.run('n2', 'apply')
  setReady(world)
  expect(world.violations).toEqual(['s is Ready while n2 has not finished a'])
})

test('a Node that was registered a moment ago is news', async () => {
  const world = sampleWorld(readyTrue, { hosts: 2 })
  await world.pass(19)
  world.complete('n1')
  setReady(world)
  expect([world.violations, world.checks()]).toEqual([[], 0])
})

test('a Node that was deleted and registered again is news for as long as a new one', async () => {
  const world = await settledWorld()
  world.complete('n1')
  world.deleteNode('n2')
  await world.pass(50)
  world.send('kubelet:n2', 'POST', '/api/v1/nodes', { metadata: { name: 'n2', labels: { pool: 'x' } } })
  await world.pass(19)
  setReady(world)
  expect([world.violations, world.checks()]).toEqual([[], 1])
  setReady(world, 0)
  await world.pass(2)
  setReady(world)
  expect(world.violations).toEqual(['s is Ready while n2 has not finished a'])
})

test('a host that has not run the new configuration has not finished', async () => {
  const world = await settledWorld()
  for (const name of ['n1', 'n2']) world.complete(name)
  const [name, one] = Object.entries(sampleSpec().packages ?? {})[0] ?? ['', {}]
  world.editSkyhook({ spec: { packages: { [name]: { ...one, configMap: { x: '1' } } } } })
  world.complete('n1')
  setReady(world)
  expect(world.violations).toEqual(['s is Ready while n2 has not finished a'])
})

test('a status of an earlier generation says nothing about the current one', async () => {
  const world = await settledWorld()
  setReady(world, world.generation() - 1)
  expect(world.violations).toEqual([])
})

test.each<[string, (world: World) => void]>([
  ['is not selected', (world) => world.label('n2', { pool: 'y' })],
  ['has no agent', (world) => world.setHealthy('n2', false)],
  ['has just got a new disk', (world) => world.tell('n2', { event: 'wiped' })],
])('a Skyhook may be Ready without a host that %s', async (_, change) => {
  const world = await settledWorld()
  world.complete('n1')
  change(world)
  setReady(world)
  expect(world.violations).toEqual([])
})
