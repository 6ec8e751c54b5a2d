import { describe, expect, test } from 'vitest'
import type { CompartmentSpec, DeploymentPolicySpec, StrategySpec } from '../../schemas/deployment-policy.ts'
import { candidatesIn, compartmentOfNode, compartmentsOf } from './compartments.ts'

const labelled = (label: string): CompartmentSpec['selector'] => ({ matchLabels: { [label]: 'true' } })
const compartment = (name: string, rest: Partial<CompartmentSpec> = {}): CompartmentSpec => ({
  name,
  selector: labelled(name),
  budget: { count: 1 },
  ...rest,
})
const policyOf = (...compartments: CompartmentSpec[]): DeploymentPolicySpec => ({
  default: { budget: { percent: 10 }, strategy: { exponential: {} } },
  compartments,
})
const labelsOf = (...labels: string[]): Record<string, string> =>
  Object.fromEntries(labels.map((label) => [label, 'true']))
const uncounted = (): undefined => undefined

describe('compartmentOfNode', () => {
  test('a node is in the compartment that selects it, else in the default', () => {
    const policy = policyOf(compartment('a'), compartment('b'))
    expect(compartmentOfNode(policy, labelsOf('b'), uncounted)).toBe('b')
    expect(compartmentOfNode(policy, {}, uncounted)).toBe('__default__')
    expect(compartmentOfNode(policyOf(), labelsOf('b'), uncounted)).toBe('__default__')
  })

  test.each<[StrategySpec | undefined, StrategySpec | undefined, string]>([
    [{ linear: {} }, { fixed: {} }, 'b'],
    [{ exponential: {} }, { linear: {} }, 'b'],
    [undefined, { exponential: {} }, 'b'],
    [{ fixed: {} }, undefined, 'a'],
  ])(
    'a node that compartments with the strategies %j and %j select is in %s, whatever their ceilings',
    (a, b, expected) => {
      const [first, second] = [a && { strategy: a }, b && { strategy: b }]
      const policy = policyOf(
        compartment('a', { ...first, budget: { count: expected === 'a' ? 9 : 1 } }),
        compartment('b', { ...second, budget: { count: expected === 'b' ? 9 : 1 } }),
      )
      expect(compartmentOfNode(policy, labelsOf('a', 'b'), uncounted)).toBe(expected)
    },
  )

  test('a node of two equally safe compartments is in that with the smaller ceiling of all nodes that it matches', () => {
    const policy = policyOf(compartment('a', { budget: { count: 3 } }), compartment('b', { budget: { percent: 10 } }))
    expect(compartmentOfNode(policy, labelsOf('a', 'b'), () => 20)).toBe('b')
    expect(compartmentOfNode(policy, labelsOf('a', 'b'), () => 40)).toBe('a')
    expect(compartmentOfNode(policy, labelsOf('a', 'b'), () => 39)).toBe('a') // 3 beside 3: by name
  })

  test('a compartment is unknown where a count decides that nobody has made', () => {
    const policy = policyOf(compartment('a', { budget: { count: 3 } }), compartment('b', { budget: { percent: 10 } }))
    expect(compartmentOfNode(policy, labelsOf('a', 'b'), uncounted)).toBeUndefined()
    expect(compartmentOfNode(policy, labelsOf('b'), uncounted)).toBe('b')
  })
})

test('a compartment without a strategy has that of the default, and a node of two counts as a candidate of both', () => {
  const policy = policyOf(compartment('a'), compartment('b', { strategy: { fixed: { initialBatch: 2 } } }))
  expect(compartmentsOf(policy).map(({ name, strategy: { kind } }) => [name, kind])).toEqual([
    ['a', 'exponential'],
    ['b', 'fixed'],
    ['__default__', 'exponential'],
  ])
  expect(candidatesIn(policy, [labelsOf('a', 'b'), labelsOf('b'), {}])).toEqual(
    new Map([
      ['a', 1],
      ['b', 2],
    ]),
  )
})
