import { expect, test } from 'vitest'
import { planRun } from './plan-run.ts'
import { runPlan } from './run-plan.ts'

test('the same seed gives the same run, event by event', async () => {
  const hashes: string[] = []
  for (const seed of [4, 4, 10]) hashes.push((await runPlan(planRun(seed), { invariants: [], isHashed: true })).hash)
  expect(hashes[1]).toBe(hashes[0])
  expect(hashes[2]).not.toBe(hashes[0])
})

test('a fleet without faults completes and settles', async () => {
  const { violation, steps } = await runPlan({ ...planRun(3), actions: [] }, { invariants: [] })
  expect(violation).toBeUndefined()
  expect(steps).toBeGreaterThan(0)
})
