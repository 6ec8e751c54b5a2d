/** A rollout that nobody counts, under a policy of which only a count says in which compartment a node is. */
import { expect, test } from 'vitest'
import { invariants } from '../../promises/all.ts'
import { packageSpec } from '../../kit/fleet/plan-skyhooks.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'

const compartment = (name: string, key: string, percent: number) => ({
  name,
  selector: { matchExpressions: [{ key, operator: 'Exists' as const }] },
  budget: { percent },
  strategy: { fixed: { initialBatch: 1 } },
})

const plan: Plan = {
  seed: 1,
  nodes: ['host1', 'host2', 'host3'].map((name) => ({ name, isControlPlane: false, pods: [] })),
  policies: [
    {
      name: 'overlapping',
      spec: {
        default: { budget: { count: 1 }, strategy: { fixed: { initialBatch: 1 } } },
        compartments: [compartment('half', 'pool', 50), compartment('third', 'pool', 34)],
      },
    },
  ],
  skyhooks: [
    {
      name: 's1',
      spec: {
        nodeSelectors: { matchLabels: { pool: 'a' } },
        deploymentPolicy: 'overlapping',
        packages: { p0a: packageSpec('p0a') },
      },
    },
  ],
  actions: [
    {
      id: 1,
      atMs: 2_000,
      kind: 'census-lists-silent',
      node: 'host1',
      forMs: 340_000,
      detail: { isEverywhere: true },
    },
  ],
}

test('nodes that nobody counts ask less and less often, and complete once somebody does', async () => {
  const { violation, checks } = await runPlan(plan, { invariants })
  expect([violation, (checks['backs-off'] ?? 0) > 0, checks['completes']]).toEqual([
    undefined,
    true,
    expect.any(Number),
  ])
})
