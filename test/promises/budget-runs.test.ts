/** Short runs in which a budget was overdrawn once. All rules judge them. */
import { expect, test } from 'vitest'
import { isCandidate } from '../../src/lease/election-rule.ts'
import { invariants } from './all.ts'
import type { Plan, PlannedAction } from '../kit/fleet/plan.ts'
import { packageSpec } from '../kit/fleet/plan-skyhooks.ts'
import { runPlan } from '../kit/fleet/run-plan.ts'

const nodeSelectors = { matchLabels: { pool: 'a' } }
const host = { isControlPlane: false, pods: [] }

/** Six nodes join at about the same time. `s1` has to be complete before they are in service, `s2` reboots them. */
function joiningPlan(actions: readonly PlannedAction[]): Plan {
  const budgets = { interruptionBudget: { count: 1 }, bootstrap: { count: 10 } }
  const packages = { pa: { ...packageSpec('pa'), uninstall: { enabled: false } } }
  return {
    seed: 1,
    nodes: Array.from({ length: 6 }, (_, index) => ({
      ...host,
      name: `host${index + 1}`,
      joinsAtMs: 20_000 + index * 200,
      isTainted: true,
    })),
    skyhooks: [
      { name: 's1', spec: { nodeSelectors, runtimeRequired: true, priority: 100, ...budgets, packages } },
      {
        name: 's2',
        spec: { nodeSelectors, priority: 200, ...budgets, packages: { pb: packageSpec('pb', { type: 'reboot' }) } },
      },
    ],
    actions,
    healsEarly: true,
  }
}

const violationOf = async (plan: Plan) => (await runPlan(plan, { invariants })).violation?.message

const fault = { kind: 'refuse', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 }
const refused = { isEverywhere: true, probability: 0.2, fault }
const disabled = { id: 1, atMs: 9_500, kind: 'disabled', node: 'host1', skyhook: 's1', forMs: 100_000 }
const after = { id: 2, atMs: 29_000, node: 'host1', skyhook: 's1', forMs: 60_000 }

test.each<[string, readonly PlannedAction[]]>([
  [
    'whose taint goes late',
    [{ id: 1, atMs: 9_500, kind: 'node-writes-refused', node: 'host1', forMs: 120_000, detail: refused }],
  ],
  [
    'at work while the required Skyhook is deleted',
    [disabled, { ...after, kind: 'skyhook-deleted', detail: { isCreatedAgain: false } }],
  ],
  ['at work while the Skyhook is required no more', [disabled, { ...after, kind: 'runtime-required' }]],
])('nodes %s are not in service and out for another Skyhook beyond its budget', async (_, actions) => {
  expect(await violationOf(joiningPlan(actions))).toBeUndefined()
})

/** Of 24 nodes under 10 %, the four stay that would be no candidates for the census; ten seconds later there is work. */
function shrinkingPlan(): Plan {
  const names = Array.from({ length: 24 }, (_, index) => `host${index + 1}`)
  const ofNoCensus = (name: string): boolean => !isCandidate(name.replace('host', 'node'), names.length)
  const sorted = names.toSorted((a, b) => Number(ofNoCensus(b)) - Number(ofNoCensus(a)))
  const action = { node: sorted[0] as string, skyhook: 's1' }
  return {
    seed: 1,
    nodes: sorted.map((name) => ({ ...host, name })),
    skyhooks: [
      { name: 's1', spec: { nodeSelectors, interruptionBudget: { percent: 10 }, packages: { pa: packageSpec('pa') } } },
    ],
    actions: [
      { ...action, id: 1, atMs: 200_000, kind: 'nodes-removed', detail: { keeps: 4, downMs: 100_000 } },
      { ...action, id: 2, atMs: 210_000, kind: 'package-version', detail: { index: 0 } },
    ],
    healsEarly: true,
  }
}

test('nodes of a fleet that has become small do not go out by the percentage of a large one', async () => {
  expect(await violationOf(shrinkingPlan())).toBeUndefined()
})
