/** What a slow API server is asked for, beside a fast one. */
import { expect, test } from 'vitest'
import { startVirtualFleet } from '../../../bench/virtual/virtual-fleet.ts'

/** Writes of its Node by each of ten nodes, three at a time, in a rollout whose steps take no time. */
async function writesPerNode(latencyMs: number): Promise<number> {
  const nodes = 10
  const plan = { nodes, budget: '30%', strategy: 'none', stepMs: 0, latencyMs, seed: 1 } as const
  const fleet = await startVirtualFleet(plan)
  fleet.takeCounts()
  await fleet.apply()
  await fleet.until(() => fleet.complete() === nodes, 600_000)
  const { perNode } = fleet.takeCounts()
  fleet.stop()
  return (perNode['patch nodes'] ?? 0) + (perNode['patch nodes/status'] ?? 0)
}

test('A node writes its Node four times in a rollout, and nine times where each answer takes half a second.', async () => {
  const [fast, slow] = [await writesPerNode(5), await writesPerNode(500)]
  console.log(`${fast.toFixed(1)} writes of each Node, ${slow.toFixed(1)} on a slow API server`)
  expect(fast).toBeLessThanOrEqual(4.2)
  expect(slow).toBeLessThanOrEqual(9)
})
