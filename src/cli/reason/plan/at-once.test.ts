import { expect, test } from 'vitest'
import type { Budget } from '../../../schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../../schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import { defaultSettings } from '../../fleet/fleet-view/settings.ts'
import { atOnce, roundsOf } from './at-once.ts'

const nodes = (count: number, labels: Record<string, string> = {}, prefix = 'n'): readonly KubernetesNode[] =>
  Array.from({ length: count }, (_, at) => ({
    metadata: { name: `${prefix}${at}`, uid: '', resourceVersion: '', labels },
  }))
const none = known(undefined)
const noDefault = known(defaultSettings)

test.each<[string, SkyhookSpec['interruptionBudget'], number | 'unlimited', string]>([
  ['no budget', undefined, 'unlimited', 'no interruptionBudget'],
  ['a count', { count: 3 }, 3, 'interruptionBudget.count 3'],
  ['a percentage, of the nodes that would be selected', { percent: 25 }, 2, 'interruptionBudget.percent 25'],
  ['a percentage with a ceiling', { percent: 50, maxCount: 3 }, 3, 'interruptionBudget.percent 50'],
  ['a count of 0', { count: 0 }, 0, 'interruptionBudget.count 0'],
])('%s says how many of ten nodes start at once', (_, interruptionBudget, limit, source) => {
  const spec = interruptionBudget ? { interruptionBudget } : {}
  expect(atOnce(spec, none, nodes(10), noDefault)).toMatchObject([{ compartment: '', limit, source }])
})

const bySettings = (defaultBudget: Budget) => known({ ...defaultSettings, defaultBudget })

test.each<[string, SkyhookSpec, Budget, number | 'unlimited', string]>([
  ['without a budget', {}, { count: 2 }, 2, 'defaults.interruptionBudget.count 2'],
  ['with an empty budget', { interruptionBudget: {} }, { percent: 40 }, 4, 'defaults.interruptionBudget.percent 40'],
  ['with a budget', { interruptionBudget: { percent: 100 } }, { count: 2 }, 10, 'interruptionBudget.percent 100'],
])('a Skyhook %s starts on so many nodes at once under the default of the agents', (_, spec, budget, limit, source) => {
  expect(atOnce(spec, none, nodes(10), bySettings(budget))).toMatchObject([{ limit, source }])
})

test('where the default of the agents may not be read, only what depends on it is unknown', () => {
  const hidden = unknown('you may not read ConfigMaps')
  const source = 'defaults.interruptionBudget of the agents is not known: you may not read ConfigMaps'
  expect(atOnce({}, none, nodes(10), hidden)).toMatchObject([{ limit: undefined, source }])
  expect(atOnce({ interruptionBudget: { count: 3 } }, none, nodes(10), hidden)).toMatchObject([{ limit: 3 }])
})

test('a policy takes no default', () => {
  const [gpu] = atOnce({ deploymentPolicy: 'p' }, known(policy), nodes(2, { gpu: 'yes' }), bySettings({ count: 7 }))
  expect(gpu).toMatchObject({ compartment: 'gpu', limit: 1, source: 'DeploymentPolicy p' })
})

const policy: DeploymentPolicySpec = {
  default: { budget: { percent: 50 }, strategy: { exponential: { initialBatch: 1 } } },
  compartments: [{ name: 'gpu', selector: { matchLabels: { gpu: 'yes' } }, budget: { count: 1 } }],
}

test('a policy divides the nodes, and its batches grow up to the budget', () => {
  const found = atOnce(
    { deploymentPolicy: 'p' },
    known(policy),
    [...nodes(10), ...nodes(2, { gpu: 'yes' }, 'g')],
    noDefault,
  )
  expect(found).toMatchObject([
    { compartment: 'gpu', nodes: ['g0', 'g1'], limit: 1, batches: [1, 1] },
    { compartment: '__default__', limit: 5, batches: [1, 2, 4, 3] },
  ])
  expect(found.map((one) => roundsOf(one, one.nodes.length))).toEqual([2, 4])
  expect(found.map((one) => roundsOf(one, 1))).toEqual([1, 1])
})

test('without the policy no node starts, and one that may not be read is unknown', () => {
  expect(atOnce({ deploymentPolicy: 'p' }, none, nodes(2), noDefault)).toMatchObject([{ limit: 0 }])
  expect(atOnce({ deploymentPolicy: 'p' }, unknown('you may not read it'), nodes(2), noDefault)).toMatchObject([
    { limit: undefined, source: 'you may not read it' },
  ])
})

test('slots are held one after another as often as the limit makes it', () => {
  const [one] = atOnce({ interruptionBudget: { count: 3 } }, none, nodes(10), noDefault)
  expect(one && [0, 1, 3, 4, 10].map((working) => roundsOf(one, working))).toEqual([0, 1, 1, 2, 4])
  const [all] = atOnce({}, none, nodes(10), noDefault)
  expect(all && roundsOf(all, 10)).toBe(1)
  const [stopped] = atOnce({ interruptionBudget: { count: 0 } }, none, nodes(10), noDefault)
  expect(stopped && roundsOf(stopped, 10)).toBeUndefined()
})

const three = new Set(['n0', 'n1', 'n2'])

test.each<[title: string, spec: SkyhookSpec, expected: readonly (readonly [number | 'unlimited', string])[]]>([
  [
    'by bootstrap.count, also where the budget is 0',
    { interruptionBudget: { count: 0 }, bootstrap: { count: 2 } },
    [
      [0, 'interruptionBudget.count 0'],
      [2, 'bootstrap.count 2'],
    ],
  ],
  [
    'without bootstrap.count not where the budget is 0',
    { interruptionBudget: { count: 0 } },
    [
      [0, 'interruptionBudget.count 0'],
      [0, 'interruptionBudget.count 0'],
    ],
  ],
  [
    'without bootstrap.count a tenth of all nodes at once, if the budget is smaller',
    { interruptionBudget: { count: 1 } },
    [
      [1, 'interruptionBudget.count 1'],
      [3, 'a tenth of the nodes, without bootstrap.count'],
    ],
  ],
  ['like all others without any budget', {}, [['unlimited', 'no interruptionBudget']]],
  [
    'not at all where bootstrap.count is 0',
    { bootstrap: { count: 0 } },
    [
      ['unlimited', 'no interruptionBudget'],
      [0, 'bootstrap.count 0'],
    ],
  ],
])('nodes that join the cluster start %s', (_, spec, expected) => {
  const found = atOnce(spec, none, nodes(30), noDefault, three)
  expect(found.map(({ limit, source }) => [limit, source])).toEqual(expected)
  if (found.length > 1)
    expect(found.map((one) => [one.isJoining, one.nodes.length])).toEqual([
      [undefined, 27],
      [true, 3],
    ])
})

test('nodes that join the cluster are counted apart in each compartment of a policy, and wait where it is missing', () => {
  const asking = { deploymentPolicy: 'p', bootstrap: { count: 2 } }
  expect(atOnce(asking, known(policy), nodes(10), noDefault, three)).toMatchObject([
    { compartment: '__default__', limit: 5, nodes: { length: 7 } },
    { compartment: '__default__', isJoining: true, limit: 2, nodes: ['n0', 'n1', 'n2'] },
  ])
  expect(atOnce(asking, none, nodes(10), noDefault, three)).toMatchObject([{ limit: 0, nodes: { length: 10 } }])
})

test('where the budget is not known, bootstrap.count alone says how many joining nodes start at once', () => {
  const hidden = unknown('you may not read ConfigMaps')
  expect(atOnce({ bootstrap: { count: 2 } }, none, nodes(10), hidden, three)).toMatchObject([
    { limit: undefined },
    { isJoining: true, limit: 2 },
  ])
  expect(atOnce({}, none, nodes(10), hidden, three)).toMatchObject([
    { limit: undefined },
    { isJoining: true, limit: undefined },
  ])
})
