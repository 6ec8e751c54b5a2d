import { expect, test } from 'vitest'
import { backsOff } from './backs-off.ts'
import { sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

const leases = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const read = (world: World, client = 'agent:n1'): void => void world.send(client, 'GET', '/api/v1/nodes/n1')

async function repeat(world: World, everySeconds: number, forSeconds: number, act: () => void): Promise<void> {
  for (let passed = 0; passed < forSeconds; passed += everySeconds) {
    act()
    await world.pass(everySeconds)
  }
}

test('a request that is repeated every two seconds is found after two minutes', async () => {
  const world = sampleWorld(backsOff)
  await repeat(world, 2, 120, () => read(world))
  expect(world.violations).toEqual([])
  await repeat(world, 2, 10, () => read(world))
  expect(world.violations[0]).toMatch(/^agent:n1 repeats get nodes n1 \d+ times in a minute, after 12\d s without/)
})

test('one that is repeated every ten seconds or less is not found, nor those of other clients', async () => {
  const world = sampleWorld(backsOff)
  await repeat(world, 10, 600, () => read(world))
  await repeat(world, 2, 300, () => read(world, 'kubelet:n1'))
  expect([world.violations, world.checks() > 0]).toEqual([[], true])
})

test('a change of what is read begins the time again, that of another object does not', async () => {
  const world = sampleWorld(backsOff)
  for (let round = 0; round < 5; round++) {
    await repeat(world, 2, 100, () => read(world))
    world.label('n1', { round: String(round) })
  }
  expect(world.violations).toEqual([])
  for (let round = 0; round < 2; round++) {
    await repeat(world, 2, 100, () => read(world))
    world.label('n2', { round: String(round) })
  }
  expect(world.violations).not.toEqual([])
})

test('a LIST is about what its selector selects', async () => {
  const world = sampleWorld(backsOff)
  const list = (): void => world.listSlots('n1')
  for (let round = 0; round < 5; round++) {
    await repeat(world, 2, 100, list)
    world.take('n1', round)
  }
  expect(world.violations).toEqual([])
  for (let round = 0; round < 2; round++) {
    await repeat(world, 2, 100, list)
    world.send('admin', 'POST', leases, { metadata: { name: `other-${round}` }, spec: {} })
  }
  expect(world.violations).not.toEqual([])
})

test('an edit of a Skyhook begins the time again, a write of its status does not', async () => {
  const world = sampleWorld(backsOff)
  for (let round = 0; round < 5; round++) {
    await repeat(world, 2, 100, () => read(world))
    world.editSkyhook({ spec: { priority: 100 + round } })
  }
  expect(world.violations).toEqual([])
  for (let round = 0; round < 2; round++) {
    await repeat(world, 2, 100, () => read(world))
    world.setStatus({ completeNodes: String(round) })
  }
  expect(world.violations).not.toEqual([])
})

test('a process that starts begins the time again', async () => {
  const world = sampleWorld(backsOff)
  for (let process = 1; process < 5; process++) {
    world.tell('n1', { event: 'agentStarted', process, kind: 'agent' })
    await repeat(world, 2, 100, () => read(world))
  }
  expect(world.violations).toEqual([])
})
