import { expect, test } from 'vitest'
import { requestRate } from './request-rate.ts'
import { sampleWorld } from './sample-world.ts'

const podsPath = '/api/v1/namespaces/skyhook/pods'
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

test('an agent that opens a watch again and again is found within the second, and one that opens many is not', () => {
  const world = sampleWorld(requestRate)
  const watch = (name: string): unknown =>
    world.send('agent:n1', 'GET', '/api/v1/nodes', undefined, { watch: '1', fieldSelector: `metadata.name=${name}` })
  for (let round = 0; round < 10; round++) for (const name of ['n1', 'n2', 'n3']) watch(name)
  expect(world.violations).toEqual([])
  watch('n1')
  expect(world.violations).toEqual(['agent:n1 sends 11 times in a second: watch nodes metadata.name=n1'])
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

test('blocked evictions have a limit of their own', async () => {
  const world = sampleWorld(requestRate)
  const minute = async (tries: number): Promise<void> => {
    for (let count = 0; count < tries; count++) {
      world.send('agent:n1', 'GET', '/api/v1/pods')
      for (const name of ['a', 'b'])
        expect(() => world.send('agent:n1', 'GET', `${podsPath}/${name}`)).toThrow('not found')
      await world.pass(1)
    }
  }
  await minute(59)
  await minute(59)
  expect(world.violations).toEqual([])
  for (let count = 0; count < 25; count++)
    for (const name of ['a', 'b', 'c'])
      expect(() => world.send('agent:n1', 'GET', `${podsPath}/${name}`)).toThrow('not found')
  await minute(30)
  expect(world.violations[0]).toContain('agent:n1 sends more than 120 requests in a minute; the last: get pods')
})

test('the next agent of a host tries each blocked pod for the first time, too', async () => {
  const world = sampleWorld(requestRate)
  const tryAll = (): void => {
    for (let pod = 0; pod < 49; pod++)
      expect(() => world.send('agent:n1', 'GET', `${podsPath}/p${pod}`)).toThrow('not found')
  }
  tryAll()
  world.tell('n1', { event: 'agentStarted', process: 2, kind: 'agent' })
  for (let time = 0; time < 3; time++) {
    tryAll()
    await world.pass(2)
  }
  expect(world.violations).toEqual([])
  tryAll()
  expect(world.violations[0]).toContain('agent:n1 sends more than 120 requests in a minute; the last: get pods')
})

test('an administrator may ask as often as he likes', () => {
  const world = sampleWorld(requestRate)
  for (let round = 0; round < 500; round++) ask(world, 'admin')
  expect([world.violations, world.checks()]).toEqual([[], 0])
})
