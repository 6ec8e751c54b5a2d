import { expect, test } from 'vitest'
import { journalKey, nodeStateKey, statusKey } from '../../src/schemas/annotations.ts'
import { policiesPath } from '../../src/schemas/api.ts'
import { entryStates, stageNames } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'
import type { Plan } from '../kit/fleet/plan.ts'
import { seriesTrue } from './series-true.ts'

const spec = sampleSpec()

/** n1 is complete, n2 has not begun; nothing has changed for a while. */
async function settledWorld(actions: Plan['actions'] = []) {
  const world = sampleWorld(seriesTrue, { hosts: 2, spec, actions })
  const entry = { name: 'a', version: '1.0.0', image: 'i', stage: 'config', state: 'complete' }
  world.annotate('n1', {
    [statusKey('s')]: 'complete',
    [nodeStateKey('s')]: JSON.stringify({ 'a|1.0.0': entry }),
    [journalKey('s')]: JSON.stringify({ v: 1, rev: 1, sha256: '', applied: appliedHash(spec) }),
  })
  await world.pass(11)
  return world
}

const ofPackage = (version: string, hasNode: boolean): string[] => {
  const labels = `skyhook_name="s",package_name="a",package_version="${version}"`
  const line = (series: string, label: string, text: string, counted: string): string =>
    `skyhook_package_${series}_count{${labels},${label}="${text}"} ${hasNode && text === counted ? 1 : 0}`
  return [
    ...entryStates.map((state) => line('state', 'state', state, 'complete')),
    ...stageNames.map((stage) => line('stage', 'stage', stage, 'config')),
  ]
}
const rollout = (policy: string): string[] => {
  const labels = `{skyhook_name="s",policy_name="${policy}",compartment_name="__default__",strategy="fixed"}`
  return [`skyhook_rollout_matched_nodes${labels} 2`, `skyhook_rollout_completed${labels} 1`]
}
const truth = [
  'skyhook_node_target_count{skyhook_name="s"} 2',
  'skyhook_node_status_count{skyhook_name="s",status="complete"} 1',
  'skyhook_node_status_count{skyhook_name="s",status="waiting"} 1',
  ...ofPackage('1.0.0', true),
  ...rollout('legacy'),
]
const pageOf = (lines: readonly string[]): string => [...lines, 'skyhookd_agent_up 1'].join('\n')

test('series that agree with the objects are as promised, and agents that do not lead serve none', async () => {
  const world = await settledWorld()
  world.serve('n1', pageOf(truth))
  world.serve('n2', pageOf([]))
  await world.end()
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('nodes that two compartments select are in the one whose percentage allows fewer', async () => {
  const world = await settledWorld()
  const of = (name: string, percent: number) => ({
    name,
    selector: { matchLabels: { pool: 'x' } },
    budget: { percent },
    strategy: { fixed: {} },
  })
  const compartments = [of('all', 100), of('half', 50)]
  world.send('admin', 'POST', policiesPath, {
    metadata: { name: 'p' },
    spec: { default: { budget: { count: 1 } }, compartments },
  })
  world.editSkyhook({ spec: { interruptionBudget: null, deploymentPolicy: 'p' } })
  await world.pass(11)
  const lines = (name: string, matched: number, completed: number): string[] => {
    const labels = `{skyhook_name="s",policy_name="p",compartment_name="${name}",strategy="fixed"}`
    return [`skyhook_rollout_matched_nodes${labels} ${matched}`, `skyhook_rollout_completed${labels} ${completed}`]
  }
  const others = truth.filter((line) => !line.startsWith('skyhook_rollout_'))
  const page = (first: string, second: string): string =>
    pageOf([...others, ...lines(first, 2, 1), ...lines(second, 0, 0), ...lines('__default__', 0, 0)])
  world.serve('n1', page('half', 'all'))
  world.serve('n2', page('all', 'half'))
  await world.end()
  expect(world.violations).toEqual([expect.stringContaining('the agent of n2')])
})

test('an agent whose own Node is gone counts nothing, and its series are not judged', async () => {
  const world = await settledWorld()
  world.deleteNode('n1')
  await world.pass(11)
  world.serve('n1', pageOf(truth))
  await world.end()
  expect([world.violations, world.checks()]).toEqual([[], 0])
})

test.each<[string, readonly string[], string]>([
  ['of a policy that was renamed', [...truth, ...rollout('former')], 'policy_name="former"'],
  ['of a version that is gone', [...truth, ...ofPackage('0.9.0', false)], 'package_version="0.9.0"'],
  ['of another Skyhook', [...truth, 'skyhook_node_target_count{skyhook_name="t"} 2'], 'skyhook_name="t"'],
  [
    'with another number',
    truth.map((line) => line.replace('target_count{skyhook_name="s"} 2', 'target_count{skyhook_name="s"} 3')),
    'target_count{skyhook_name="s"} 3, and the objects say 2',
  ],
  [
    'with a node in two statuses',
    [...truth, 'skyhook_node_status_count{skyhook_name="s",status="erroring"} 1'],
    'status_count{skyhook_name="s"} 3',
  ],
  ['that are not complete', truth.slice(0, -1), 'no skyhook_rollout_completed'],
])('series %s are a violation', async (_, lines, message) => {
  const world = await settledWorld()
  world.serve('n1', pageOf(lines))
  await world.end()
  expect(world.violations).toEqual([expect.stringContaining(message)])
})

test.each([
  ['before its watches are certainly back', 40, []],
  ['too late', 55, [expect.stringContaining('no skyhook_node_target_count')]],
])('a census catches up after a fault of watches: %s', async (_, seconds, violations) => {
  const world = await settledWorld([{ kind: 'watches-cut' } as unknown as Plan['actions'][number]])
  world.setFaultsEnded()
  world.serve('n1', pageOf(truth.slice(1)))
  await world.pass(20)
  world.later(seconds - 20, () => world.serve('n1', pageOf(truth)))
  await world.end()
  expect(world.violations).toEqual(violations)
})

test('a change just before the end may not be served yet', async () => {
  const world = await settledWorld()
  world.label('n2', { pool: 'y' })
  world.serve('n1', pageOf(truth))
  await world.end()
  expect([world.violations, world.checks()]).toEqual([[], 0])
})
