/** Batches that grow begin with nodes that sleep until shortly before, and with slots that nobody holds yet. */
import { expect, test } from 'vitest'
import { turnsOf } from '../../../bench/fleet/plan.ts'
import { startVirtualFleet } from '../../../bench/virtual/virtual-fleet.ts'

/** Three stages and their checks, the restart of a service, and what is between them. */
const turnMs = 8_000

test.each([30, 100])('each of the growing batches of %i nodes begins at once, with all of its nodes', async (nodes) => {
  const plan = { nodes, budget: '20%', strategy: 'exponential', stepMs: 1_000, latencyMs: 5, seed: 1 } as const
  const fleet = await startVirtualFleet(plan)
  await fleet.apply()
  const tookMs = await fleet.until(() => fleet.complete() === nodes, 600_000)
  fleet.stop()
  console.log(`${nodes} nodes, ${turnsOf(plan)} batches: ${(tookMs / 1_000).toFixed(1)} s`)
  expect(tookMs).toBeLessThan(turnsOf(plan) * turnMs)
  expect(fleet.most().out).toBeLessThanOrEqual(nodes / 5)
})

test('nodes that go one by one do not all list the slots for each place', async () => {
  const nodes = 30
  const plan = { nodes, budget: '1', strategy: 'exponential', stepMs: 1_000, latencyMs: 5, seed: 1 } as const
  const fleet = await startVirtualFleet(plan)
  fleet.takeCounts()
  await fleet.apply()
  const tookMs = await fleet.until(() => fleet.complete() === nodes, 600_000)
  const lists = fleet.takeCounts().perNode['list leases']
  fleet.stop()
  console.log(`${nodes} nodes, batches of one: ${(tookMs / 1_000).toFixed(1)} s, ${lists?.toFixed(1)} LISTs per node`)
  expect(tookMs).toBeLessThan(nodes * turnMs)
  expect(lists).toBeLessThan(7)
})
