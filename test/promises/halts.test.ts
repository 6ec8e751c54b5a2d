import { expect, test } from 'vitest'
import { halts } from './halts.ts'
import { sampleWorld } from './sample-world.ts'

function halted() {
  const world = sampleWorld(halts, { hosts: 1 })
  world.setHalted('n1', true)
  return world
}

const newer = 'the journal is not written: it was written by a newer agent'

test('an agent that cannot read its journal and says nothing is found', async () => {
  const world = halted()
  await world.pass(30)
  expect(world.violations).toEqual([])
  await world.pass(2)
  expect(world.violations[0]).toBe('n1 does not say for s that a newer agent wrote its journal, for 30000 ms')
})

test.each([
  ['HostUnusable', newer],
  ['Paused', 'the Skyhook has the annotation'],
])('an agent that cannot read its journal may say %s', async (reason, message) => {
  const world = halted()
  world.sayReason('n1', reason, message)
  await world.pass(60)
  expect([world.violations, world.checks() > 0]).toEqual([[], true])
})

test('an agent that goes silent for a moment, as after an edit, is fine; one that stays silent is found', async () => {
  const world = halted()
  world.sayReason('n1', 'HostUnusable', newer)
  await world.pass(60)
  world.sayNothing('n1')
  await world.pass(2)
  world.sayReason('n1', 'HostUnusable', newer)
  await world.pass(60)
  expect(world.violations).toEqual([])
  world.sayNothing('n1')
  await world.pass(32)
  expect(world.violations[0]).toBe('n1 does not say for s that a newer agent wrote its journal, for 30000 ms')
})

test('time in which something hinders the agent does not count', async () => {
  const world = halted()
  await world.pass(20)
  world.setHealthy('n1', false)
  await world.pass(20)
  world.setHealthy('n1', true)
  await world.pass(20)
  expect(world.violations).toEqual([])
})

/** The agent has been hindered for 20 s. */
async function afterFault(kind: string, node = 'n1', detail = {}) {
  const world = halted()
  world.setHealthy('n1', false)
  await world.pass(20)
  world.setHealthy('n1', true)
  world.ends(kind, node, detail)
  return world
}

test.each([
  ['network-cut', 'n1', {}],
  ['api-silent', 'n1', {}],
  ['api-slow', 'n2', { isEverywhere: true }],
])('an agent has 30 s more where %s may have lost its last request', async (kind, node, detail) => {
  const world = await afterFault(kind, node, detail)
  world.tell('n1', { event: 'agentStarted', process: 8, kind: 'census' })
  await world.pass(59)
  expect(world.violations).toEqual([])
  await world.pass(2)
  expect(world.violations[0]).toBe('n1 does not say for s that a newer agent wrote its journal, for 30000 ms')
})

test.each([
  ['api-errors', 'n1'],
  ['network-cut', 'n2'],
])('an agent has no more time after %s of %s', async (kind, node) => {
  const world = await afterFault(kind, node)
  await world.pass(32)
  expect(world.violations).not.toEqual([])
})

test('an agent that starts after the fault has lost no request', async () => {
  const world = await afterFault('network-cut')
  world.tell('n1', { event: 'agentStarted', process: 7, kind: 'agent' })
  await world.pass(32)
  expect(world.violations).not.toEqual([])
})

test('a step that starts under an agent that cannot read its journal is found', async () => {
  const world = halted()
  world.sayReason('n1', 'HostUnusable', newer)
  world.start('n1')
  expect(world.violations).toEqual([])
  await world.pass(10)
  world.start('n1')
  expect(world.violations).toEqual(['n1 stepStarted, and its agent cannot read the journal of a newer one'])
})

test('a cordon that such an agent changes is found', async () => {
  const world = halted()
  world.sayReason('n1', 'HostUnusable', newer)
  await world.pass(10)
  world.cordon('n1')
  expect(world.violations).toEqual([
    'n1 changes the cordon of its Node, and its agent cannot read the journal of a newer one',
  ])
})

test('an agent that can read its journal starts what it wants', async () => {
  const world = sampleWorld(halts, { hosts: 1 })
  await world.pass(60)
  world.start('n1')
  expect(world.violations).toEqual([])
})
