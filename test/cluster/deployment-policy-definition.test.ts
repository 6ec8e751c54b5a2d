/** Which DeploymentPolicies a real API server accepts, and its answers to the others. */
import { describe, expect, test } from 'vitest'
import { useDefinitions, wording } from './definitions.ts'
import { group, pace, refusedPolicies } from '../kit/objects/refused-policies.ts'

const definitions = useDefinitions()

describe('a DeploymentPolicy', () => {
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

  test.each(refusedPolicies)('the API server refuses a DeploymentPolicy with %s', async (_, spec, words) => {
    const answer = await definitions.create('deploymentpolicies', spec)
    expect(wording(answer.message)).toContain(wording(words))
    expect(answer.status).toBe(422)
  })
})
