import { expect, test } from 'vitest'
import { completes } from './completes.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

const one = (): World => sampleWorld(completes, { hosts: 1 })
const sayComplete = (world: World): unknown => world.annotate('n1', { 'skyhook.nvidia.com/status_s': 'complete' })

test('a host that has finished in time completes', async () => {
  const world = one()
  world.setFaultsEnded()
  await world.pass(100)
  world.complete('n1')
  sayComplete(world)
  await world.pass(300)
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('a host that has not finished in time is found', async () => {
  const world = one()
  world.setFaultsEnded()
  await world.pass(300)
  expect(world.violations).toEqual(['n1 has not finished a of s, 255000 ms after the last fault; it says no reason'])
})

test('a host that has finished and stays cordoned is found', async () => {
  const world = one()
  world.complete('n1')
  sayComplete(world)
  world.cordon('n1')
  world.setFaultsEnded()
  await world.pass(300)
  expect(world.violations).toEqual([expect.stringContaining('n1 is still cordoned for s')])
})

test('work is pending until the host has finished, whatever its Node says', () => {
  const world = one()
  sayComplete(world)
  expect(world.pending()).toBe('n1 has not finished a of s')
  world.complete('n1')
  expect(world.pending()).toBeUndefined()
})

test('a Skyhook that is created again under its name finds what was finished, and not what was half changed', () => {
  const a = { version: '1.0.0', image: 'registry.test/a', interrupt: { type: 'reboot' } } as const
  const world = sampleWorld(completes, { spec: sampleSpec({ packages: { a } }) })
  world.complete('n1')
  world.run('n1', 'post-interrupt')
  world.run('n1', 'post-interrupt-check')
  world.complete('n2')
  world.replaceSkyhook()
  sayComplete(world)
  expect(world.pending()).toBe('n2 has not finished a of s')
})

test('nothing has to complete while faults go on', async () => {
  const world = one()
  await world.pass(900)
  expect([world.violations, world.checks()]).toEqual([[], 0])
})

test('a host that a person keeps from its work may wait', async () => {
  const world = one()
  world.sayReason('n1', 'Paused')
  world.setFaultsEnded()
  await world.pass(300)
  expect(world.violations).toEqual([])
})

test('a host may wait for a slot only where the budget lets nobody start', async () => {
  for (const [count, violations] of [
    [0, 0],
    [1, 1],
  ] as const) {
    const world = sampleWorld(completes, { hosts: 1, spec: sampleSpec({ interruptionBudget: { count } }) })
    world.sayReason('n1', 'WaitingForSlot')
    world.setFaultsEnded()
    await world.pass(300)
    expect(world.violations).toHaveLength(violations)
  }
})

test('a package that keeps failing need not complete', async () => {
  const world = one()
  world.setFaultsEnded()
  await world.pass(100)
  world.run('n1', 'apply', { code: 1 })
  world.sayReason('n1', 'StepFailed')
  await world.pass(300)
  expect(world.violations).toEqual([])
})

test('a host may need longer after its drain was held up, and another one may wait for it', async () => {
  const world = sampleWorld(completes)
  world.setFaultsEnded()
  world.sayReason('n1', 'WaitingForSlot')
  world.sayReason('n2', 'DrainBlocked')
  await world.pass(200)
  world.sayNothing('n2')
  await world.pass(150)
  expect([world.violations, world.checks()]).toEqual([[], 2])
})
