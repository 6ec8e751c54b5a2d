import { expect, test } from 'vitest'
import { sampleWorld } from './sample-world.ts'
import { slotsOwned } from './slots-owned.ts'

test('a slot that its agent does not write for five minutes is found', async () => {
  const world = sampleWorld(slotsOwned)
  world.take('n1')
  await world.pass(298)
  expect(world.violations).toEqual([])
  await world.pass(12)
  expect(world.violations[0]).toContain('its agent has not written it')
})

test('time without an agent does not count', async () => {
  const world = sampleWorld(slotsOwned)
  world.take('n1')
  world.setHealthy('n1', false)
  await world.pass(600)
  expect([world.violations, world.checks() > 0]).toEqual([[], true])
})

test('a slot that is given back is no orphan', async () => {
  const world = sampleWorld(slotsOwned)
  world.take('n1')
  await world.pass(200)
  world.release('agent:n1')
  await world.pass(300)
  expect(world.violations).toEqual([])
})

test('a slot whose Node is gone is found after the delay of garbage collection', async () => {
  const world = sampleWorld(slotsOwned)
  world.take('n1')
  world.deleteNode('n1')
  await world.pass(25)
  expect(world.violations).toEqual([])
  await world.pass(25)
  expect(world.violations[0]).toContain('without its Node')
})
