import { expect, test } from 'vitest'
import { joining } from './joining.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

async function tainted() {
  const world = sampleWorld(joining, { spec: sampleSpec({ runtimeRequired: true }) })
  world.taint('n1', true)
  await world.pass(15)
  return world
}

test('a taint that an agent lifts before the work is finished is found', async () => {
  const world = await tainted()
  world.run('n1', 'apply')
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual(['n1 lifts its taint and has not finished a of s'])
})

test('an agent may lift the taint after the work', async () => {
  const world = await tainted()
  world.complete('n1')
  world.taint('n1', false, 'agent:n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test.each<[string, (world: Awaited<ReturnType<typeof tainted>>) => unknown]>([
  ['the spec has just changed', (world) => world.editSkyhook({ spec: { priority: 5 } })],
  ['no Skyhook asks for it', (world) => world.editSkyhook({ spec: { runtimeRequired: false } })],
  ['the disk is new', (world) => world.tell('n1', { event: 'wiped' })],
])('an agent may lift the taint when %s', async (_, change) => {
  const world = await tainted()
  change(world)
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual([])
})

test('a person may lift the taint at any time', async () => {
  const world = await tainted()
  world.taint('n1', false)
  expect(world.violations).toEqual([])
})
