/** A rollout under a policy beside a census that is killed every five seconds, compared with the same one left alone. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { StrategySpec } from '../../../src/schemas/deployment-policy.ts'
import { invariants } from '../../promises/all.ts'
import { type BatchHistory, type ClosedBatch, recordBatches } from './batch-history.ts'
import { controlPlaneLabel } from '../../kit/fleet/fleet-host.ts'
import { packageSpec } from '../../kit/fleet/plan-skyhooks.ts'
import { skyhooksAtMs } from '../../kit/fleet/plan-time.ts'
import type { Plan, PlannedAction } from '../../kit/fleet/plan.ts'
import { runPlan, type RunResult } from '../../kit/fleet/run-plan.ts'

const intervalMs = 5_000

/** The first of `hosts` is of the control plane: a compartment of its own beside the strategy. */
const rollout = (hosts: number, strategy: StrategySpec, actions: readonly PlannedAction[]): Plan => ({
  seed: 1,
  nodes: Array.from({ length: hosts }, (_, index) => ({
    name: `host${index + 1}`,
    isControlPlane: index === 0,
    pods: [],
  })),
  skyhooks: [
    {
      name: 's1',
      spec: {
        nodeSelectors: { matchLabels: { pool: 'a' } },
        deploymentPolicy: 'careful',
        packages: { p0a: packageSpec('p0a', { type: 'reboot' }) },
      },
    },
  ],
  policies: [
    {
      name: 'careful',
      spec: {
        default: { budget: { count: 3 }, strategy },
        compartments: [
          {
            name: 'control',
            selector: { matchExpressions: [{ key: controlPlaneLabel, operator: 'Exists' }] },
            budget: { count: 2 },
          },
        ],
      },
    },
  ],
  actions,
  healsEarly: true,
})

/** From the creation of the Skyhook on. */
const kills = (kind: string, untilMs: number): PlannedAction[] =>
  Array.from({ length: (untilMs - skyhooksAtMs) / intervalMs }, (_, index) => ({
    id: 100 + index,
    atMs: skyhooksAtMs + index * intervalMs,
    kind,
    node: 'host2',
    detail: { isEverywhere: true },
  }))

type Recorded = RunResult & { readonly history: BatchHistory; readonly killed: number }

async function record(plan: Plan): Promise<Recorded> {
  const { recorder, history } = recordBatches()
  const result = await runPlan(plan, { invariants: [...invariants, recorder] })
  return { ...result, history, killed: result.met.filter(({ kind }) => kind.startsWith('census-')).length }
}

/** Compartments go on beside each other: the order within each is promised. */
const byCompartment = ({ history }: Recorded): Partial<Record<string, ClosedBatch[]>> =>
  Object.groupBy(history.closed, ({ compartment }) => compartment)

const victims = [
  ['the process of the census', 'census-killed', 15],
  ['the agent that leads the census', 'census-leader-killed', 12], // none leads between two
] as const

describe('a rollout in growing batches', () => {
  const killsUntilMs = 200_000
  const plan = (actions: readonly PlannedAction[]): Plan =>
    rollout(5, { exponential: { initialBatch: 1, growthFactor: 2 } }, actions)
  let calm: Recorded
  beforeAll(async () => void (calm = await record(plan([]))), 120_000)

  test('a rollout is recorded batch by batch', () => {
    expect([calm.violation, calm.killed]).toEqual([undefined, 0])
    expect(byCompartment(calm)).toMatchObject({
      control: [{ epoch: 1, size: 1, admitted: 1, succeeded: 1 }],
      __default__: [
        { epoch: 1, size: 1, admitted: 1, succeeded: 1 },
        { epoch: 2, size: 2, admitted: 2, succeeded: 2 },
        { epoch: 3, size: 4, admitted: 1, succeeded: 1 },
      ],
    })
    expect(calm.history.finished.toSorted()).toEqual(['node1', 'node2', 'node3', 'node4', 'node5'])
  })

  test.each(victims)(
    'a rollout has the same batches in the same order while %s is killed every 5 s',
    async (_, kind, minKills) => {
      const disturbed = await record(plan(kills(kind, killsUntilMs)))
      expect(disturbed.violation).toBeUndefined()
      expect(disturbed.killed).toBeGreaterThan(minKills)
      expect(disturbed.history.lastClosedAtMs).toBeLessThan(killsUntilMs)
      expect(byCompartment(disturbed)).toEqual(byCompartment(calm))
      expect(disturbed.history.finished.toSorted()).toEqual(calm.history.finished.toSorted())
    },
    120_000,
  )
})

test('a rollout that fails stops after the same batch while the process of the census is killed every 5 s', async () => {
  const failing = ['host1', 'host2', 'host3', 'host4'].map(
    (node, id): PlannedAction => ({
      id,
      atMs: skyhooksAtMs - 1_000,
      kind: 'steps-fail',
      node,
      forMs: 120_000,
      detail: { mode: 'apply' },
    }),
  )
  const plan = (actions: readonly PlannedAction[]): Plan =>
    rollout(4, { fixed: { initialBatch: 1, failureThreshold: 2 } }, [...failing, ...actions])
  const [calm, disturbed] = [await record(plan([])), await record(plan(kills('census-killed', 120_000)))]
  expect([calm.violation, disturbed.violation]).toEqual([undefined, undefined])
  expect(disturbed.killed).toBeGreaterThanOrEqual(8)
  expect(byCompartment(calm)).toMatchObject({
    control: [{ epoch: 1, size: 1, admitted: 1, failed: 1, next: { consecutiveFailures: 1, stopped: false } }],
    __default__: [
      { epoch: 1, size: 1, admitted: 1, failed: 1, next: { consecutiveFailures: 1, stopped: false } },
      { epoch: 2, size: 1, admitted: 1, failed: 1, next: { consecutiveFailures: 2, stopped: true } },
      { epoch: 3, size: 1, admitted: 1, succeeded: 1 }, // once the batches were reset
    ],
  })
  expect(byCompartment(disturbed)).toEqual(byCompartment(calm))
}, 120_000)
