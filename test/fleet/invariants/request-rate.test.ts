import { expect, test } from 'vitest'
import { requestRate } from './request-rate.ts'
import { sampleWorld } from './sample-world.ts'

const ask = (world: ReturnType<typeof sampleWorld>, client: string): unknown =>
  world.send(client, 'GET', '/api/v1/nodes/n1')

test('an agent that asks in a loop is found within the second', () => {
  const world = sampleWorld(requestRate)
  for (let round = 0; round < 51; round++) ask(world, 'agent:n1')
  expect(world.violations).toEqual(['agent:n1 sends 51 times in a second: get nodes n1'])
})

test('a census that asks in a loop is found within the second', () => {
  const world = sampleWorld(requestRate)
  for (let round = 0; round < 51; round++) ask(world, 'census:n1')
  expect(world.violations).toHaveLength(1)
})

test('an agent that asks twice a second for minutes is within the limit of its first minute only', async () => {
  const world = sampleWorld(requestRate)
  for (let second = 0; second < 59; second++) {
    for (let round = 0; round < 3; round++) ask(world, 'agent:n1')
    await world.pass(1)
  }
  expect(world.violations).toEqual([])
  for (let second = 0; second < 59; second++) {
    for (let round = 0; round < 3; round++) ask(world, 'agent:n1')
    await world.pass(1)
  }
  expect(world.violations[0]).toContain('agent:n1 sends more than 120 requests in a minute')
})

test('an administrator may ask as often as he likes', () => {
  const world = sampleWorld(requestRate)
  for (let round = 0; round < 500; round++) ask(world, 'admin')
  expect([world.violations, world.checks()]).toEqual([[], 0])
})
