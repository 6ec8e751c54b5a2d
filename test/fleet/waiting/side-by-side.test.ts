/** Without a budget no node waits for another one. */
import { expect, test } from 'vitest'
import { startVirtualFleet } from '../../../bench/virtual/virtual-fleet.ts'

async function rolloutMs(nodes: number, budget: string): Promise<number> {
  const fleet = await startVirtualFleet({ nodes, budget, strategy: 'none', stepMs: 1_000, latencyMs: 5, seed: 1 })
  await fleet.apply()
  const tookMs = await fleet.until(() => fleet.complete() === nodes, 600_000)
  fleet.stop()
  return tookMs
}

test('twenty nodes take as long as one where no budget holds them back', async () => {
  const alone = await rolloutMs(1, 'none')
  const all = await rolloutMs(20, 'none')
  console.log(`alone ${alone / 1_000} s, twenty ${all / 1_000} s`)
  expect(all).toBeLessThan(1.5 * alone)
})

test('twenty nodes with a budget of one take twenty times as long', async () => {
  expect(await rolloutMs(20, '1')).toBeGreaterThan(15 * (await rolloutMs(1, '1')))
})
