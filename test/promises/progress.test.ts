import { expect, test } from 'vitest'
import { progress } from './progress.ts'
import { sampleWorld } from './sample-world.ts'

const one = () => sampleWorld(progress, { hosts: 1 })
type World = ReturnType<typeof one>

test('a node that says nothing for a minute is found', async () => {
  const world = one()
  await world.pass(60)
  expect(world.violations).toEqual([])
  await world.pass(15)
  expect(world.violations[0]).toBe('n1 is silent for s and says no reason; nothing has happened there for 60000 ms')
})

test('a node on which steps run stands not still', async () => {
  const world = one()
  for (let round = 0; round < 10; round++) {
    world.run('n1', 'apply')
    await world.pass(30)
  }
  expect(world.violations).toEqual([])
})

test('a node that is complete may stand still', async () => {
  const world = one()
  world.complete('n1')
  world.annotate('n1', { 'skyhook.nvidia.com/status_s': 'complete' })
  await world.pass(200)
  expect(world.violations).toEqual([])
})

test('an agent that only changes times makes no progress', async () => {
  const world = one()
  for (let round = 0; round < 30; round++) {
    world.annotate('n1', { 'skyhook.nvidia.com/reason_s': `{"since":"2026-01-01T00:00:${10 + round}Z"}` })
    world.annotate('n1', { 'skyhook.nvidia.com/reason_s': null })
    await world.pass(1)
  }
  expect(world.violations).toEqual([])
})

const pause = (world: World): void =>
  void world.editSkyhook({ metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } })

test.each<[string, string, (world: World) => void]>([
  ['Paused', '', pause],
  ['Disabled', '', (w) => w.editSkyhook({ metadata: { annotations: { 'skyhook.nvidia.com/disable': 'true' } } })],
  ['Ignored', '', (w) => w.label('n1', { 'skyhook.nvidia.com/ignore': 'true' })],
  ['WaitingForSlot', '', (w) => w.editSkyhook({ spec: { interruptionBudget: { count: 0 } } })],
  ['StepFailed', '', () => undefined],
])('the reason %s is checked against the world', async (reason, message, makeTrue) => {
  const untrue = one()
  untrue.sayReason('n1', reason, message)
  await untrue.pass(130)
  expect(untrue.violations.length > 0).toBe(reason !== 'StepFailed')

  const world = one()
  makeTrue(world)
  world.sayReason('n1', reason, message)
  await world.pass(130)
  expect(world.violations).toEqual([])
})

test('a node that waits for a slot which another holds has a true reason', async () => {
  const world = sampleWorld(progress)
  world.take('n2')
  world.sayReason('n1', 'WaitingForSlot', '1 of 1 slots are held: n2')
  world.setHealthy('n2', false)
  await world.pass(200)
  expect(world.violations).toEqual([])
  world.release('admin')
  await world.pass(70)
  expect(world.violations[0]).toContain('0 of 1 slots are held by other nodes')
})

test('a slot that another node holds for a moment between two looks makes the reason true', async () => {
  const world = sampleWorld(progress)
  world.sayReason('n1', 'WaitingForSlot', '1 of 1 slots are held')
  world.setHealthy('n2', false)
  for (let round = 0; round < 4; round++) {
    await world.pass(40)
    world.take('n2')
    world.release('admin')
  }
  expect(world.violations).toEqual([])
  await world.pass(70)
  expect(world.violations).not.toEqual([])
})

test('a node without an agent need not say anything', async () => {
  const world = one()
  world.setHealthy('n1', false)
  await world.pass(200)
  expect(world.violations).toEqual([])
})
