import { describe, expect, test } from 'vitest'
import { cordonKey, ignoreLabel, statusKey } from '../schemas/annotations.ts'
import { nodeReporting, skyhookWith, spec } from '../../test/kit/objects/census-objects.ts'
import type { CensusNode } from './model/node-facts.ts'
import { affectsCount, nodeChange } from './scheduler.ts'

describe('a change of a node', () => {
  const only = skyhookWith({ spec: { ...spec, nodeSelectors: { matchLabels: { pool: 'a' } } } })
  const inPool = nodeReporting('n', { labels: { pool: 'a' } })
  const outside = nodeReporting('n', { labels: { pool: 'b' } })
  const carrying = (annotations: Record<string, string>) => nodeReporting('n', { labels: { pool: 'a' }, annotations })

  test.each<[string, CensusNode | undefined, CensusNode | undefined, boolean]>([
    ['a node joins', undefined, inPool, true],
    ['a node leaves', inPool, undefined, true],
    ['a node joins that is not selected', undefined, outside, false],
    ['it enters the selection', outside, inPool, true],
    ['it leaves the selection', inPool, outside, true],
    ['nothing but a heartbeat changes', inPool, { ...inPool }, false],
    ['its agent reports something', inPool, nodeReporting('n', { labels: { pool: 'a' }, status: 'waiting' }), true],
    ['its agent reports something of another Skyhook', inPool, carrying({ [statusKey('other')]: 'complete' }), false],
    ['another Skyhook cordons it', inPool, carrying({ [cordonKey('other')]: 'true' }), true],
    [
      'someone labels it to be ignored',
      inPool,
      nodeReporting('n', { labels: { pool: 'a', [ignoreLabel]: 'true' } }),
      true,
    ],
    ['another machine takes its name', inPool, { ...inPool, uid: 'other' }, true],
  ])('a count is affected or not when %s', (_, before, after, matters) => {
    expect(affectsCount(only, nodeChange(before, after))).toBe(matters)
  })
})

describe('a change of labels under a policy', () => {
  const named = skyhookWith({ spec: { ...spec, deploymentPolicy: 'by-zone' } })
  const zones = ['a', 'b'].map((zone) => ({
    name: `zone-${zone}`,
    selector: { matchLabels: { zone } },
    budget: { count: 1 },
  }))
  const policy = {
    state: 'found',
    uid: 'policy-uid',
    generation: 1,
    spec: { default: { budget: { count: 1 }, strategy: { fixed: {} } }, compartments: zones },
  } as const
  const labelled = (labels: Record<string, string>) => nodeReporting('n', { labels })

  test.each<[string, Record<string, string>, boolean]>([
    ['another Skyhook labels it with its status', { zone: 'a', [statusKey('other')]: 'waiting' }, false],
    ['it moves to another compartment', { zone: 'b' }, true],
    ['it moves to the default compartment', {}, true],
  ])('a count is affected or not when %s', (_, labels, matters) => {
    expect(affectsCount(named, nodeChange(labelled({ zone: 'a' }), labelled(labels)), policy)).toBe(matters)
  })

  test('no compartment matters while the policy is unknown', () => {
    const change = nodeChange(labelled({ zone: 'a' }), labelled({ zone: 'b' }))
    expect(affectsCount(named, change, { state: 'unknown', why: 'not listed yet' })).toBe(false)
  })
})
