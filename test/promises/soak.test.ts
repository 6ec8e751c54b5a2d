import { expect, test } from 'vitest'
import { budget } from './budget.ts'
import type { Invariant } from './promised.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'
import { soak } from './soak.ts'

const worldOf = (invariant: Invariant = soak) =>
  sampleWorld(invariant, { spec: sampleSpec({ pace: { pauseSeconds: 20 } }) })

/** n1 has finished its work and is back in service. */
async function finished(invariant?: Invariant) {
  const world = worldOf(invariant)
  world.take('n1')
  world.cordon('n1')
  world.complete('n1')
  world.uncordon('n1')
  await world.pass(1)
  return world
}

test('a slot that goes before its soak is over is found', async () => {
  const world = await finished()
  await world.pass(18)
  world.release('agent:n1')
  expect(world.violations).toEqual([expect.stringContaining('1000 ms before it has soaked for s')])
})

test('a slot may go after its soak', async () => {
  const world = await finished()
  await world.pass(19)
  world.release('agent:n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test.each<[string, (world: Awaited<ReturnType<typeof finished>>) => unknown]>([
  ['the spec changes', (world) => world.editSkyhook({ spec: { pace: { pauseSeconds: 90 } } })],
  ['the node gets another label', (world) => world.label('n1', { pool: 'y' })],
  ['its disk is new', (world) => world.tell('n1', { event: 'wiped' })],
  ['new work goes out for it', (world) => world.start('n1')],
])('a soak may end when %s', async (_, change) => {
  const world = await finished()
  change(world)
  world.release('agent:n1')
  expect(world.violations).toEqual([])
})

test('a node that soaks under its cordon is found', () => {
  const world = worldOf()
  world.take('n1')
  world.cordon('n1')
  world.complete('n1')
  world.renew('n1', 'soaking')
  expect(world.violations).toEqual(['n1 soaks for s while its Node carries the cordon mark'])
})

test('a node that soaks counts for the budget', async () => {
  const world = await finished(budget)
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toEqual([expect.stringContaining('1 others were out: n1')])
})

test('a node that has soaked does not count for the budget', async () => {
  const world = await finished(budget)
  await world.pass(20)
  world.take('n2', 1)
  world.start('n2')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})
