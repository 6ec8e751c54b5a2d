import { expect, test } from 'vitest'
import { invariants } from '../../promises/all.ts'
import { planRun } from './plan-run.ts'
import { packageSpec } from '../../kit/fleet/plan-skyhooks.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'

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

const host = { isControlPlane: false, pods: [] }
const small: Plan = {
  seed: 1,
  nodes: [{ ...host, name: 'host1' }],
  skyhooks: [
    {
      name: 's1',
      spec: {
        nodeSelectors: { matchLabels: { pool: 'a' } },
        interruptionBudget: { count: 1 },
        packages: { p0a: packageSpec('p0a', { type: 'reboot' }) },
      },
    },
  ],
  actions: [],
  healsEarly: true,
}
const [skyhook] = small.skyhooks

test('a host that joins with the runtime-required taint completes and loses it', async () => {
  const nodes = [...small.nodes, { ...host, name: 'host2', joinsAtMs: 140_000, isTainted: true }]
  const skyhooks = [{ name: 's1', spec: { ...skyhook?.spec, runtimeRequired: true } }]
  const { violation, checks, virtualMs } = await runPlan({ ...small, nodes, skyhooks }, { invariants })
  expect([violation, checks['joining'], virtualMs > 140_000]).toEqual([undefined, 1, true])
})

test('a host soaks for the time in the pace, and its DaemonSet has to be Ready again', async () => {
  const skyhooks = [{ name: 's1', spec: { ...skyhook?.spec, pace: { pauseSeconds: 20, minReadySeconds: 8 } } }]
  const { violation, checks } = await runPlan({ ...small, skyhooks, hasDaemonSet: true }, { invariants })
  expect([violation, (checks['soak'] ?? 0) > 1]).toEqual([undefined, true])
})

test.each(['step', 'down', 'booted'] as const)('an agent that is upgraded in the phase %s goes on', async (during) => {
  const nodes = [{ ...host, name: 'host1', startsWithOlderAgent: true }]
  const actions = [{ id: 0, atMs: 9_000, kind: 'agent-upgraded', during }]
  const { violation, met } = await runPlan({ ...small, nodes, actions }, { invariants })
  expect([violation, met]).toEqual([undefined, [{ kind: 'agent-upgraded', phase: during }]])
})

test('an agent halts where a newer one has written the journal', async () => {
  const actions = [{ id: 0, atMs: 12_000, kind: 'agent-newer', node: 'host1', skyhook: 's1', forMs: 90_000 }]
  const { violation, checks } = await runPlan({ ...small, actions }, { invariants })
  expect([violation, (checks['halts'] ?? 0) > 10]).toEqual([undefined, true])
})

const rollback = { kind: 'agent-older', node: 'host1', skyhook: 's1' }
const rollout = { kind: 'agent-newer', node: 'host1', skyhook: 's1' }

test.each([
  [
    'before',
    [
      { ...rollout, atMs: 2_000, forMs: 20_000 },
      { ...rollback, atMs: 30_000, forMs: 5_000 },
    ],
  ],
  [
    'during',
    [
      { ...rollback, atMs: 2_000, forMs: 30_000 },
      { ...rollout, atMs: 5_000, forMs: 20_000 },
    ],
  ],
  [
    'around',
    [
      { ...rollout, atMs: 2_000, forMs: 20_000 },
      { ...rollback, atMs: 18_000, forMs: 15_000 },
    ],
  ],
  [
    'between two of',
    [
      { ...rollout, atMs: 2_000, forMs: 20_000 },
      { ...rollback, atMs: 30_000, forMs: 5_000 },
      { ...rollback, atMs: 32_000, forMs: 9_000 },
    ],
  ],
] as const)('a newer agent that runs %s an older one is there in the end', async (_, planned) => {
  const actions = planned.map((action, id) => ({ ...action, id }))
  const { violation } = await runPlan({ ...small, actions }, { invariants })
  expect(violation).toBeUndefined()
})

const { interruptionBudget: _, ...unlimited } = skyhook?.spec ?? {}
const pacedPlan = (changes: Partial<Plan>): Plan => ({
  ...small,
  nodes: ['host1', 'host2', 'host3'].map((name) => ({ ...host, name })),
  skyhooks: [{ name: 's1', spec: { ...unlimited, deploymentPolicy: 'careful' } }],
  ...changes,
})
const careful = { name: 'careful', spec: { default: { budget: { count: 2 }, strategy: { linear: {} } } } }

test('a fleet goes batch by batch, and the last batch is counted', async () => {
  const { violation, checks } = await runPlan(pacedPlan({ policies: [careful] }), { invariants })
  expect([violation, checks['batches']]).toEqual([undefined, 2]) // one node, then two
})

test('a fleet waits for its policy, and another Skyhook does not', async () => {
  const others = [
    ...pacedPlan({}).skyhooks,
    { name: 's2', spec: { ...unlimited, priority: 10, packages: { p1a: packageSpec('p1a') } } },
  ]
  const policies = [{ ...careful, createdAtMs: 60_000 }]
  const { violation, trace } = await runPlan(pacedPlan({ policies, skyhooks: others }), { invariants, isTraced: true })
  expect(violation).toBeUndefined()
  const secondsOf = (text: string): number[] =>
    trace.filter((line) => line.includes(text)).map((line) => Number(line.trim().split(' ')[0]))
  expect(secondsOf('"reason":"DeploymentPolicyNotFound"').length).toBeGreaterThan(2)
  expect(Math.min(...secondsOf('status_s2=complete'))).toBeLessThan(60)
  expect(Math.min(...secondsOf('status_s1=complete'))).toBeGreaterThan(60)
})
