/** Which DeploymentPolicies a real API server accepts, and its answers to the others. */
import { describe, expect, test } from 'vitest'
import { useDefinitions } from './definitions.ts'
import type { Json } from './chart-cluster.ts'

const definitions = useDefinitions()

describe('a DeploymentPolicy', () => {
  const pace = { budget: { count: 1 }, strategy: { fixed: {} } }
  const group = (name: string, fields: Json = {}): Json => ({
    name,
    selector: { matchLabels: { zone: name } },
    budget: { percent: 10 },
    ...fields,
  })

  test('a DeploymentPolicy gets the defaults of the original operator', async () => {
    const { body } = await definitions.create('deploymentpolicies', {
      default: { ...pace, strategy: { linear: {} } },
      compartments: [group('a', { strategy: { exponential: { initialBatch: 2 } } })],
    })
    expect(body['spec']).toEqual({
      resetBatchStateOnCompletion: false,
      default: {
        budget: { count: 1 },
        strategy: { linear: { initialBatch: 1, batchThreshold: 100, safetyLimit: 50, delta: 1 } },
      },
      compartments: [
        group('a', {
          strategy: { exponential: { initialBatch: 2, batchThreshold: 100, safetyLimit: 50, growthFactor: 2 } },
        }),
      ],
    })
  })

  test.each<[string, Json, string]>([
    ['no default', { compartments: [] }, 'spec.default: Required value'],
    [
      'percent and count',
      { default: { ...pace, budget: { percent: 1, count: 1 } } },
      'spec.default.budget: Invalid value: give exactly one of percent and count',
    ],
    [
      'neither percent nor count',
      { default: { ...pace, budget: {} } },
      'spec.default.budget: Invalid value: give exactly one',
    ],
    ['a budget of zero', { default: { ...pace, budget: { count: 0 } } }, 'spec.default.budget.count'],
    [
      'two strategies',
      { default: { ...pace, strategy: { fixed: {}, linear: {} } } },
      'spec.default.strategy: Invalid value: give exactly one of fixed, linear and exponential',
    ],
    ['no strategy', { default: { ...pace, strategy: {} } }, 'spec.default.strategy: Invalid value: give exactly one'],
    [
      'a factor of 1',
      { default: { ...pace, strategy: { exponential: { growthFactor: 1 } } } },
      'spec.default.strategy.exponential.growthFactor',
    ],
    [
      'two compartments of the same name',
      { default: pace, compartments: [group('a'), group('a', { selector: {} })] },
      'spec.compartments[1]: Duplicate value: {"name":"a"}',
    ],
    [
      'two compartments with the same selector',
      { default: pace, compartments: [group('a', { selector: {} }), group('b', { selector: {} })] },
      'spec.compartments: Invalid value: compartments ["a", "b"] have the same selector',
    ],
    [
      'a compartment named __default__',
      { default: pace, compartments: [group('__default__')] },
      'spec.compartments[0].name: Invalid value: "__default__": __default__ stands for the nodes of no compartment',
    ],
    [
      'a compartment without budget',
      { default: pace, compartments: [group('a', { budget: undefined })] },
      'spec.compartments[0].budget: Required value',
    ],
    [
      'maxCount beside count',
      { default: { ...pace, budget: { count: 2, maxCount: 1 } } },
      'spec.default.budget.maxCount: Invalid value: maxCount only caps a percent',
    ],
  ])('the API server refuses a DeploymentPolicy with %s', async (_, spec, words) => {
    const answer = await definitions.create('deploymentpolicies', spec)
    expect(answer.message).toContain(words)
    expect(answer.status).toBe(422)
  })
})
