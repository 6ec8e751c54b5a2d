import { expect, test } from 'vitest'
import { type FleetScene, pod, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import {
  ignoreLabel,
  keepCordonedKey,
  nodeStateKey,
  pauseKey,
  reasonKey,
  statusKey,
} from '../../../schemas/annotations.ts'
import { skyhooksPath } from '../../../schemas/api.ts'
import type { NodeStatus, Skyhook } from '../../../schemas/skyhook.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { fleetStatus, paceOf, type SkyhookStatus } from './fleet-status.ts'
import { createNodeReader } from './node-report.ts'
import { wrapText } from '../../base/output/wrap.ts'
import { readCompletions } from './read-rollouts.ts'
import { statusLine, statusText } from './status-text.ts'

async function statusIn({ transport, simulation }: FleetScene, name = 's'): Promise<SkyhookStatus> {
  const { clock } = simulation
  const nodeOf = createNodeReader()
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock, nodeOf, isMetadataEnough: true })
  const found = fleetStatus(fleet, await readCompletions(transport), name)
  const one = found.known ? found.value[0] : undefined
  if (one === undefined) throw new Error(`no Skyhook ${name}`)
  return one
}

const threeHosts = ['host1', 'host2', 'host3'].map((name) => ({ name }))

test('a rollout shows counts, holders of the budget, and nodes in trouble before those that wait', async () => {
  const scene = startScene({ nodes: threeHosts })
  for (const { name } of threeHosts) scene.host(name).conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
  await scene.until(
    () => threeHosts.some((_, index) => scene.annotation(`node${index + 1}`, statusKey('s')) === 'erroring'),
    'a failure',
  )
  await scene.pass(3_000) // before the next attempt
  const { nodes, budget, groups } = await statusIn(scene)
  expect(nodes).toEqual({ known: true, value: { selected: 3, byStatus: { erroring: 1, waiting: 2 } } })
  expect(budget).toMatchObject({
    known: true,
    value: { limit: 1, holders: [{ node: expect.any(String) as string, sinceMs: expect.any(Number) as number }] },
  })
  expect(groups.map(({ reason, section, nodes: names }) => [reason, section, names.length])).toEqual([
    ['StepFailed', 'failing', 1],
    ['WaitingForSlot', 'waiting', 2],
  ])
})

test('a node whose drain is blocked comes before the many that wait for its slot', async () => {
  const nodes = threeHosts.map(({ name }) => ({ name, pods: [pod(`shop-of-${name}`)] }))
  const packages = { p: { version: '1.0.0', image: 'registry.test/p', interrupt: { type: 'reboot' as const } } }
  const scene = startScene({ nodes, skyhooks: { s: { packages } } })
  scene.simulation.admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'shop' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  const isBlocked = (node: string): boolean => scene.annotation(node, reasonKey('s'))?.includes('DrainBlocked') === true
  await scene.until(() => ['node1', 'node2', 'node3'].some(isBlocked), 'a drain that is blocked')
  const { groups } = await statusIn(scene)
  expect(groups.map(({ reason, nodes: names }) => [reason, names.length])).toEqual([
    ['DrainBlocked', 1],
    ['WaitingForSlot', 2],
  ])
})

test('a step that hangs is named with its age, and with the nodes that took less for everything', async () => {
  const scene = startScene({ nodes: threeHosts })
  for (const { name } of threeHosts) scene.host(name).conditions.change({ stepMs: 5_000 })
  const statusesOf = (): readonly (string | undefined)[] =>
    [1, 2, 3].map((index) => scene.annotation(`node${index}`, statusKey('s')))
  await scene.until(() => statusesOf().includes('complete'), 'the first node')
  for (const { name } of threeHosts) scene.host(name).conditions.change({ stepMs: 3_600_000 })
  await scene.pass(15_000)
  const { steps } = await statusIn(scene)
  expect(steps).toMatchObject([{ mode: 'apply-check', attempt: 1, nodes: [expect.any(String)] }])
  await scene.pass(240_000)
  const { steps: later } = await statusIn(scene)
  expect(later).toMatchObject([{ mode: 'apply-check', sinceMs: steps[0]?.sinceMs, slowerThan: { nodes: 1 } }])
})

test('a rollout without its own budget follows the default, on which agents, census and status agree', async () => {
  const scene = startScene({
    nodes: [1, 2, 3, 4, 5].map((index) => ({ name: `host${index}` })),
    skyhooks: { s: { interruptionBudget: {} } },
    defaultBudget: { percent: 40 },
  })
  for (const index of [1, 2, 3, 4, 5]) scene.host(`host${index}`).conditions.change({ stepMs: 20_000 })
  const atWork = (): number =>
    [1, 2, 3, 4, 5].filter((index) => scene.annotation(`node${index}`, statusKey('s')) === 'in_progress').length
  await scene.until(() => atWork() === 2, 'two nodes at work')
  for (let seconds = 0; seconds < 15; seconds++) {
    await scene.pass(1_000)
    expect(atWork()).toBeLessThanOrEqual(2)
  }
  const { budget } = await statusIn(scene)
  expect(budget).toMatchObject({ known: true, value: { limit: 2, holders: [{}, {}] } })
  const skyhook = scene.simulation.server.object('skyhooks', undefined, 's') as Skyhook | undefined
  expect(skyhook?.spec.interruptionBudget).toEqual({})
  expect(skyhook?.status).toMatchObject({ compartmentStatuses: { __default__: { matched: 5, ceiling: 2 } } })
})

test('the limit of a Skyhook without a budget is unknown where the settings of the agents are', async () => {
  const scene = startScene({ skyhooks: { s: { interruptionBudget: {} }, t: {} } })
  await scene.pass(10_000)
  const why = 'defaults.interruptionBudget of the agents is not known: no ConfigMap in namespace skyhook has settings'
  expect((await statusIn(scene)).budget).toMatchObject({ known: true, value: { limit: { unknown: why } } })
  expect((await statusIn(scene, 't')).budget).toMatchObject({ known: true, value: { limit: 1 } })
})

test('a node whose state somebody edited, or that completed another spec, does not count as complete', async () => {
  const scene = startScene({ nodes: threeHosts.slice(0, 1) })
  const isComplete = (): boolean => scene.annotation('node1', statusKey('s')) === 'complete'
  await scene.until(isComplete, 'complete')
  await scene.pass(1_000)
  const countsOf = async (): Promise<unknown> => {
    const { nodes } = await statusIn(scene)
    return nodes.known && nodes.value.byStatus
  }
  expect(await countsOf()).toEqual({ complete: 1 })
  scene.host('host1').supervisor.freeze()
  scene.host('host1').supervisor.kill()
  scene.editNode('node1', { metadata: { annotations: { [nodeStateKey('s')]: '{}' } } })
  expect(await countsOf()).toEqual({ waiting: 1 })
})

test('a node that has uninstalled a deleted Skyhook counts as complete beside one that fails to', async () => {
  const packages = { p0a: { version: '1.0.0', image: 'registry.test/p0a', uninstall: { enabled: true } } }
  const scene = startScene({
    nodes: threeHosts.slice(0, 2),
    skyhooks: { s: { packages, interruptionBudget: { count: 2 } } },
  })
  const isAt = (node: string, status: NodeStatus): boolean => scene.annotation(node, statusKey('s')) === status
  await scene.until(() => isAt('node1', 'complete') && isAt('node2', 'complete'), 'complete')
  await scene.pass(5_000)
  scene.host('host2').conditions.change({ isFailing: ({ mode }) => mode === 'uninstall' })
  scene.simulation.admin.send('DELETE', `${skyhooksPath}/s`)
  await scene.until(() => isAt('node2', 'erroring'), 'a failure')
  await scene.pass(5_000)
  const { nodes } = await statusIn(scene)
  expect(nodes).toMatchObject({ known: true, value: { byStatus: { complete: 1 } } })
})

test('the node of an agent that has been silent for ten minutes is unknown, despite its last report', async () => {
  const scene = startScene({ nodes: threeHosts.slice(0, 2) })
  await scene.until(
    () => ['node1', 'node2'].every((name) => scene.annotation(name, statusKey('s')) === 'complete'),
    'complete',
  )
  scene.host('host2').supervisor.freeze()
  scene.host('host2').supervisor.kill()
  await scene.pass(2_000)
  const before = await statusIn(scene)
  expect(before.nodes.known && before.nodes.value.byStatus).toEqual({ complete: 2 })
  await scene.pass(600_000)
  const after = await statusIn(scene)
  expect(after.nodes.known && after.nodes.value.byStatus).toEqual({ complete: 1, unknown: 1 })
  expect(after.groups).toMatchObject([{ reason: 'AgentNotReady', nodes: ['node2'] }])
})

test('a node at work whose agent does not answer is named before it counts as unknown', async () => {
  const scene = startScene({ nodes: threeHosts.slice(0, 1) })
  scene.host('host1').conditions.change({ stepMs: 3_600_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
  scene.host('host1').supervisor.freeze()
  scene.host('host1').supervisor.kill()
  await scene.pass(15_000)
  expect((await statusIn(scene)).groups).toEqual([])
  await scene.pass(30_000)
  const { nodes, groups } = await statusIn(scene)
  expect(nodes.known && nodes.value.byStatus).toEqual({ in_progress: 1 })
  expect(groups).toMatchObject([
    {
      reason: 'AgentNotReady',
      message: 'the agent does not answer',
      nodes: ['node1'],
      sinceMs: expect.any(Number) as number,
    },
  ])
})

test('a stalled Skyhook shows since when', async () => {
  const scene = startScene({ nodes: threeHosts.slice(0, 1) })
  scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
  await scene.pass(300_000)
  const one = await statusIn(scene)
  expect(one.stalled).toMatch(/^NodesErroring: /)
  const conditions = scene.simulation.server.object('skyhooks', undefined, 's')?.['status'] as {
    readonly conditions: readonly { readonly type: string; readonly lastTransitionTime: string }[]
  }
  const stalled = conditions.conditions.find(({ type }) => type === 'Stalled')
  expect(one.stalledSinceMs).toBe(Date.parse(stalled?.lastTransitionTime ?? ''))
  const nowMs = (one.stalledSinceMs ?? 0) + 14 * 60_000
  expect(statusText([one], nowMs)).toMatch(/^ {2}stalled: NodesErroring: .* \(for 14m\)$/m)
  expect(statusLine(one)).not.toContain('14m')
})

test('the pace is that of the completions that the nodes reported', async () => {
  const scene = startScene({ nodes: [1, 2, 3, 4, 5].map((index) => ({ name: `host${index}` })) })
  const completed = (): number =>
    [1, 2, 3, 4, 5].filter((index) => scene.annotation(`node${index}`, statusKey('s')) === 'complete').length
  await scene.until(() => completed() === 4, 'four nodes complete')
  await scene.pass(1_000)
  const { pace } = await statusIn(scene)
  expect(pace?.measured).toBeGreaterThanOrEqual(3)
  expect(pace?.nodesPerHour).toBeGreaterThan(0)
})

test('a rollout that is paused, or whose remaining nodes all fail, has no pace', async () => {
  const scene = startScene({
    nodes: [1, 2, 3, 4, 5].map((index) => ({ name: `host${index}` })),
    skyhooks: { s: { interruptionBudget: { count: 2 } } },
  })
  const stopFailing = scene.host('host5').conditions.change({ isFailing: () => true })
  const isAt = (index: number, status: NodeStatus): boolean =>
    scene.annotation(`node${index}`, statusKey('s')) === status
  await scene.until(() => [1, 2, 3, 4].every((index) => isAt(index, 'complete')) && isAt(5, 'erroring'), 'a failure')
  const failing = await statusIn(scene)
  expect([failing.nodes, failing.pace]).toMatchObject([
    { value: { byStatus: { complete: 4, erroring: 1 } } },
    undefined,
  ])
  expect(failing.budget).toMatchObject({ value: { holders: [{ node: 'node5', phase: 'failing' }] } })
  stopFailing()
  scene.host('host5').conditions.change({ stepMs: 600_000 })
  await scene.until(() => isAt(5, 'in_progress'), 'work')
  expect((await statusIn(scene)).pace).toBeDefined()
  scene.editSkyhook('s', { metadata: { annotations: { [pauseKey]: 'true' } } })
  expect((await statusIn(scene)).pace).toBeUndefined()
})

test('a status has installed and next versions, and the nodes that are held and ignored', async () => {
  const of = (name: string) => ({ [name]: { version: '1.0.0', image: `registry.test/${name}` } })
  const packages = { ...of('p0a'), ...of('p0b') }
  const scene = startScene({ nodes: threeHosts, skyhooks: { s: { packages } } })
  const isComplete = (name: string): boolean => scene.annotation(name, statusKey('s')) === 'complete'
  await scene.until(() => ['node1', 'node2', 'node3'].every(isComplete), 'complete')
  expect((await statusIn(scene)).packages).toEqual([
    { name: 'p0a', version: '1.0.0', from: [] },
    { name: 'p0b', version: '1.0.0', from: [] },
  ])
  scene.editNode('node2', { metadata: { labels: { [ignoreLabel]: 'true' } } })
  scene.editNode('node3', { metadata: { annotations: { [keepCordonedKey]: 'true' } } })
  scene.editSkyhook('s', { spec: { packages: { p0a: { version: '1.1.0' }, p0b: null } } })
  const { packages: shown, held, ignored } = await statusIn(scene)
  expect({ shown, held, ignored }).toEqual({
    shown: [
      { name: 'p0a', version: '1.1.0', from: ['1.0.0'] },
      { name: 'p0b', from: ['1.0.0'] },
    ],
    held: ['node3'],
    ignored: ['node2'],
  })
})

const minute = 60_000
const paces: readonly (readonly [
  title: string,
  completions: readonly number[],
  remaining: number,
  nowMs: number,
  expected: unknown,
])[] = [
  ['two completions are too few for a pace', [0, minute], 5, 2 * minute, undefined],
  ['nothing is left', [0, minute, 2 * minute], 0, 2 * minute, undefined],
  [
    'one node a minute',
    [0, minute, 2 * minute, 3 * minute],
    10,
    3 * minute,
    { nodesPerHour: 60, restMs: 10 * minute, measured: 4 },
  ],
  [
    'a rollout that stands still slows down',
    [0, minute, 2 * minute, 3 * minute],
    1,
    40 * minute,
    { nodesPerHour: 6, restMs: 10 * minute, measured: 4 },
  ],
]
for (const [title, completions, remaining, nowMs, expected] of paces)
  test(`the pace of a rollout: ${title}`, () => {
    expect(paceOf(completions, remaining, nowMs)).toEqual(expected)
  })

const sample: SkyhookStatus = {
  name: 'tuning',
  generation: 3,
  isPaused: true,
  isDisabled: false,
  isDeleting: false,
  stalled: undefined,
  nodes: { known: true, value: { selected: 4, byStatus: { complete: 2, erroring: 1, waiting: 1 } } },
  budget: { known: true, value: { limit: 2, holders: [{ node: 'node3', phase: 'failed', sinceMs: 0 }] } },
  groups: [
    {
      reason: 'StepFailed',
      message: 'package a 1.0.0: apply apply.sh exited 1\nno such file',
      section: 'failing',
      nodes: ['node3'],
      sinceMs: 0,
      attempts: 4,
      nextTryMs: 212_000,
    },
  ],
  steps: [
    {
      name: 'b',
      version: '1.0.0',
      mode: 'apply-check',
      path: 'check.sh',
      sinceMs: 0,
      attempt: 2,
      failingSinceMs: -720_000,
      slowerThan: { nodes: 2, slowestMs: 60_000 },
      nodes: ['node4'],
    },
  ],
  packages: [
    { name: 'a', version: '1.1.0', from: ['1.0.0'] },
    { name: 'b', version: '2.0.0', from: [] },
    { name: 'c', from: ['1.0.0'] },
  ],
  closed: [
    { by: 'taint', nodes: ['node4'] },
    { by: 'keep-cordoned', nodes: ['node2'] },
  ],
  held: ['node2'],
  ignored: ['node1'],
  pace: { nodesPerHour: 750, restMs: 600_000, measured: 5 },
}

test('a rollout is one block of text', () => {
  expect(statusText([sample], 180_000)).toMatchInlineSnapshot(`
    "tuning  [################!!!!!!!.......] 2 of 4 nodes complete (50%)
      1 erroring, 1 waiting
      paused
      packages: a 1.0.0 -> 1.1.0, b 2.0.0, c 1.0.0 -> removed
      1 node StepFailed for 3m, 4 failed attempts, the next one in 32s: package a 1.0.0: apply apply.sh exited 1 [node3]
      1 node: apply-check check.sh of b 1.0.0 has been running for 3m (attempt 2, failing for 15m), longer than all work of each of the 2 nodes that finished (at most 60s) [node4]
      closed for new pods, nothing at work: 1 node by the runtime-required taint [node4]
      held (node hold): node2
      ignored (node ignore): node1
      budget: 1 of 2 in use: node3 (failed 3m)
      pace: 750 nodes per hour by the last 5, about 10m left
      next: kubectl skyhook explain tuning node3
    "
  `)
  expect(statusLine(sample)).toMatchInlineSnapshot(`"tuning: 2/4 complete (2 complete, 1 erroring, 1 waiting), 1 out"`)
})

test('a step that takes longer than it should is the next question if there is no other', () => {
  expect(statusText([{ ...sample, groups: [] }], 180_000)).toContain('next: kubectl skyhook explain tuning node4')
  const steps = sample.steps.map(({ slowerThan: _finished, ...step }) => step)
  expect(statusText([{ ...sample, groups: [], steps }], 180_000)).not.toContain('next:')
})

test.each([80, 200])('a rollout fits into %d columns, and no line ends inside a word', (columns) => {
  const [group] = sample.groups
  const message = 'package a 1.0.0: '.concat('the kernel module cannot be loaded '.repeat(8))
  const long = { ...sample, stalled: message, groups: [{ ...group, message }] as never }
  const text = statusText([long], 180_000)
  const wrapped = wrapText(text, columns)
  expect(Math.max(...wrapped.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(columns)
  expect(wrapped.split(/\s+/)).toEqual(text.split(/\s+/))
})

test('what may not be read is shown as unknown', () => {
  const hidden = { known: false, why: 'you may not read Nodes' } as const
  const text = statusText([{ ...sample, nodes: hidden, budget: hidden }], 0)
  expect(text).toContain('nodes unknown: you may not read Nodes')
  expect(text).toContain('budget: unknown: you may not read Nodes')
})

test('control characters of messages do not reach the terminal', () => {
  const [group] = sample.groups
  if (group === undefined) throw new Error('the sample has one')
  const text = statusText([{ ...sample, groups: [{ ...group, message: 'a\u001b[2Jb' }] }], 0)
  expect(text).not.toContain('\u001b')
})

test('a reason beyond the shown ones is counted', () => {
  const [group] = sample.groups
  if (group === undefined) throw new Error('the sample has one')
  expect(statusText([{ ...sample, groups: Array.from({ length: 7 }, () => group) }], 0)).toContain(
    '\n  1 node with 1 more reason\n',
  )
})

test('nodes that join beside the budget are not counted as out of it', async () => {
  const scene = startScene({
    nodes: threeHosts,
    skyhooks: { s: { runtimeRequired: true, autoTaintNewNodes: true, bootstrap: { count: 1 } } },
  })
  for (const { name } of threeHosts) scene.host(name).conditions.change({ stepMs: 60_000 })
  const joining = async (): Promise<SkyhookStatus> => await statusIn(scene)
  await scene.pass(20_000)
  const status = await joining()
  const text = statusText([status], scene.simulation.clock.wallMs())
  expect(text).toMatch(
    /budget: [01] of 1 in use.*; beside it 1 node closed for new pods by the runtime-required taint: node/,
  )
})
