/** Skyhooks that ask for an uninstall and are deleted at a bad moment. */
import { expect, test } from 'vitest'
import { invariants } from '../../promises/all.ts'
import { packageSpec } from '../../kit/fleet/plan-skyhooks.ts'
import type { Plan, PlannedAction } from '../../kit/fleet/plan.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'

const plan = (hosts: number, actions: readonly PlannedAction[]): Plan => ({
  seed: 1,
  nodes: Array.from({ length: hosts }, (_, index) => ({
    name: `host${index + 1}`,
    isControlPlane: false,
    pods: [],
  })),
  skyhooks: [
    {
      name: 's1',
      spec: {
        nodeSelectors: { matchLabels: { pool: 'a' } },
        interruptionBudget: { count: hosts },
        packages: { pa: packageSpec('pa') },
      },
    },
  ],
  actions,
  healsEarly: true,
})

const deleted = {
  kind: 'skyhook-deleted',
  node: 'host1',
  skyhook: 's1',
  forMs: 1_000,
  detail: { isCreatedAgain: false },
}

test('a Skyhook that is deleted while nobody counts leaves nothing on hosts', async () => {
  const blind = { id: 1, atMs: 1, kind: 'census-blind', node: 'host1', forMs: 110_000 }
  const { violation, checks } = await runPlan(plan(3, [blind, { ...deleted, id: 2, atMs: 40_000 }]), { invariants })
  expect([violation, checks['uninstalled']]).toEqual([undefined, 3])
})

test('a Skyhook stays until a host that has just begun for it, and cannot say so, has uninstalled', async () => {
  const fault = { kind: 'refuse', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 5 }
  const refused = {
    id: 1,
    atMs: 9_000,
    kind: 'node-writes-refused',
    node: 'host1',
    forMs: 12_000,
    detail: { fault, probability: 1 },
  }
  const edit: PlannedAction = { ...deleted, id: 2, atMs: 9_500, during: 'step' }
  const { violation, checks } = await runPlan(plan(1, [refused, edit]), { invariants })
  expect([violation, (checks['uninstalled'] ?? 0) > 1]).toEqual([undefined, true])
})
