import { expect, test } from 'vitest'
import { planRun } from './plan-run.ts'
import type { Plan } from './plan.ts'
import { runPlan } from './run-plan.ts'

/** A part of its plan: enough for nodes that wait for each other, and for a few faults. */
function smallPlan(seed: number): Plan {
  const plan = planRun(seed)
  return { ...plan, nodes: plan.nodes.slice(0, 2), actions: plan.actions.slice(0, 4) }
}

test('the same seed gives the same run, event by event', async () => {
  const hashes: string[] = []
  for (const seed of [4, 4, 10]) hashes.push((await runPlan(smallPlan(seed), { invariants: [], isHashed: true })).hash)
  expect(hashes[1]).toBe(hashes[0])
  expect(hashes[2]).not.toBe(hashes[0])
})

test('a fleet without faults completes and settles', async () => {
  const { violation, steps } = await runPlan({ ...smallPlan(3), actions: [] }, { invariants: [] })
  expect(violation).toBeUndefined()
  expect(steps).toBeGreaterThan(0)
})
