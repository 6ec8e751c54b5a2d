/** Scenes and runs of a simulated fleet, judged by the record that real hosts would leave of them. */
import { expect, test } from 'vitest'
import type { PlannedAction } from '../fleet/plan.ts'
import { packageSpec } from '../fleet/plan-skyhooks.ts'
import { runPlan } from '../fleet/run-plan.ts'
import { everywhere } from '../../promises/all.ts'
import { recordFleet } from './fleet-record.ts'
import { judgeRecord } from './judge.ts'
import { sampleSpec, sampleWorld } from '../../promises/sample-world.ts'

type World = ReturnType<typeof sampleWorld>

const guarded = sampleSpec({ podNonInterruptLabels: { matchLabels: { keep: 'yes' } } })
const podsPath = '/api/v1/namespaces/default/pods'

const put = (world: World, name: string, labels = {}): unknown =>
  world.send('workload', 'POST', podsPath, {
    metadata: { name, labels },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] },
  })

const setReady = (world: World): void => {
  const condition = { type: 'Ready', status: 'True', observedGeneration: world.generation(), reason: 'x', message: '' }
  world.setStatus({ conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }] })
}

/** Its agent goes out under a slot of its own. */
async function goOut(world: World, name: string, index = 0): Promise<void> {
  await world.pass(2)
  world.take(name, index)
  await world.pass(1)
  world.cordon(name)
}

const reboot = (world: World): void => {
  world.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
  const status = (bootID: string): void =>
    void world.send('kubelet:n1', 'PATCH', '/api/v1/nodes/n1/status', { status: { nodeInfo: { bootID } } })
  status('one')
  status('two')
}

test.each<[promise: string, says: string, scene: (world: World) => Promise<void> | void]>([
  [
    'budget',
    'n2 went out for s on its read',
    async (world) => {
      await goOut(world, 'n1')
      await goOut(world, 'n2', 1)
    },
  ],
  ['budget', 'without a confirming read', (world) => void world.start('n1')],
  [
    'slots-kept',
    'while its Node carries the cordon mark',
    async (world) => {
      await goOut(world, 'n1')
      world.release('agent:n1')
    },
  ],
  [
    'slots-kept',
    'while it is half changed',
    async (world) => {
      world.take('n1')
      world.run('n1', 'apply')
      await world.pass(1)
      world.release('agent:n1')
    },
  ],
  [
    'slots-true',
    'n1 is out without a slot',
    async (world) => {
      await goOut(world, 'n1')
      await world.pass(1)
      world.release('admin')
      await world.pass(100)
    },
  ],
  [
    'slots-true',
    'n1 is finished and keeps a slot',
    async (world) => {
      world.take('n1')
      world.complete('n1')
      await world.pass(80)
    },
  ],
  ['reboots', 'n1 reboots without a slot', reboot],
  [
    'cordon',
    'takes off the cordon that an administrator set',
    (world) => {
      world.patchNode('admin', 'n1', { spec: { unschedulable: true } })
      world.cordon('n1')
      world.uncordon('n1')
    },
  ],
  [
    'evictions',
    'deletes the pod p instead of evicting it',
    (world) => {
      put(world, 'p')
      world.cordon('n1')
      world.send('agent:n1', 'DELETE', `${podsPath}/p`)
    },
  ],
  [
    'evictions',
    'n1 evicts the protected pod default/p',
    (world) => {
      put(world, 'p', { keep: 'yes' })
      world.cordon('n1')
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p', namespace: 'default' } }
      world.send('agent:n1', 'POST', `${podsPath}/p/eviction`, eviction)
    },
  ],
  [
    'ended-pods',
    'restarts service beside the running pod default/p',
    async (world) => {
      put(world, 'p')
      world.cordon('n1')
      await world.pass(1)
      world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
    },
  ],
  [
    'complete-once',
    'succeeds a second time on n1',
    async (world) => {
      await world.pass(130)
      world.run('n1', 'apply')
      await world.pass(1)
      world.run('n1', 'apply')
    },
  ],
  [
    'interrupt-apart',
    'while a apply',
    (world) => {
      world.start('n1')
      world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
    },
  ],
  ['progress', 'n1 is silent for s and says no reason', (world) => world.pass(90)],
  [
    'request-rate',
    'sends more than 400 requests in a minute',
    async (world) => {
      for (let second = 0; second < 41; second++) {
        for (let round = 0; round < 10; round++) world.send('agent:n1', 'GET', '/api/v1/nodes/n1')
        await world.pass(1)
      }
    },
  ],
  [
    'ready-true',
    's is Ready while n2 has not finished a',
    async (world) => {
      await world.pass(61)
      world.complete('n1')
      await world.pass(1)
      setReady(world)
    },
  ],
  ['counted', 'nobody counts s', (world) => world.pass(200)],
])('%s: a record shows that %s', async (promise, says, scene) => {
  const recorder = recordFleet()
  const world = sampleWorld(recorder, { spec: guarded })
  await scene(world)
  await world.pass(1)
  const found = judgeRecord(recorder.evidence(), everywhere).find(({ name }) => name === promise)
  expect(found?.violations.map(({ text }) => text)).toContainEqual(expect.stringContaining(says))
})

/** Two Skyhooks as those of a campaign, and faults and edits as it makes them. */
function chaosPlan(kinds: readonly string[]) {
  const nodeSelectors = { matchLabels: { pool: 'a' } }
  const common = { nodeSelectors, interruptionBudget: { count: 2 } }
  return {
    seed: 1,
    nodes: ['host1', 'host2', 'host3'].map((name) => ({
      name,
      isControlPlane: false,
      pods: [{ name: `app-${name}`, isProtected: false, isGuarded: true, graceMs: 2_000 }],
    })),
    skyhooks: [
      {
        name: 's1',
        spec: { ...common, priority: 100, packages: { pa: packageSpec('pa', { type: 'reboot' as const }) } },
      },
      { name: 's2', spec: { ...common, priority: 200, packages: { pb: packageSpec('pb'), pc: packageSpec('pc') } } },
    ],
    actions: kinds.flatMap((kind, index): readonly PlannedAction[] => {
      const about = { atMs: 45_000 + 15_000 * index, node: `host${(index % 3) + 1}`, skyhook: `s${(index % 2) + 1}` }
      return [{ ...about, id: index, kind, forMs: 8_000, detail: { index: 0, downMs: 5_000 } }]
    }),
    healsEarly: true,
  }
}

test('the record of a run that keeps its promises shows none broken', async () => {
  const recorder = recordFleet()
  const kinds = ['agent-killed', 'host-crashed', 'package-version', 'host-rebooted', 'api-server-down', 'node-deleted']
  kinds.push('lease-deleted', 'cordoned', 'package-config')
  const { violation } = await runPlan(chaosPlan(kinds), { invariants: [...everywhere, recorder] })
  expect(violation).toBeUndefined()
  const findings = judgeRecord(recorder.evidence(), everywhere)
  expect(findings.filter(({ violations }) => violations.length > 0)).toEqual([])
  expect(findings.filter(({ checked }) => checked === 0)).toEqual([])
})
