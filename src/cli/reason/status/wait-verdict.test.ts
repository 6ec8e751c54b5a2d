import { expect, test } from 'vitest'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { waitVerdict } from './wait-verdict.ts'

const skyhook = (generation: number, conditions: readonly object[]): Skyhook => ({
  metadata: { name: 's', uid: 'u', resourceVersion: '1', generation },
  spec: {},
  status: { conditions },
})
const condition = (type: string, status: string, observedGeneration: number, reason = 'NodesErroring'): object => ({
  type,
  status,
  observedGeneration,
  reason,
  message: 'node1',
})

const rows: readonly (readonly [title: string, found: Skyhook | undefined, expected: object])[] = [
  ['waits without conditions', skyhook(2, []), { verdict: 'waiting' }],
  ['ends when Ready is True for its generation', skyhook(2, [condition('Ready', 'True', 2)]), { verdict: 'complete' }],
  [
    'ends when no node is selected, and reports it',
    skyhook(2, [condition('Ready', 'True', 2, 'NoNodeSelected')]),
    { verdict: 'no-nodes' },
  ],
  ['does not take Ready of an earlier generation', skyhook(2, [condition('Ready', 'True', 1)]), { verdict: 'waiting' }],
  [
    'does not take Stalled of an earlier generation',
    skyhook(2, [condition('Stalled', 'True', 1)]),
    { verdict: 'waiting' },
  ],
  [
    'ends when Stalled is True',
    skyhook(2, [condition('Ready', 'False', 2), condition('Stalled', 'True', 2)]),
    { verdict: 'stalled', message: 'NodesErroring: node1' },
  ],
  [
    'ends when the spec is edited',
    skyhook(3, [condition('Ready', 'True', 3)]),
    { verdict: 'superseded', generation: 3 },
  ],
  ['ends when the Skyhook is deleted', undefined, { verdict: 'gone' }],
  [
    'ends when the Skyhook is another one of that name',
    { ...skyhook(2, []), metadata: { name: 's', uid: 'other', resourceVersion: '1', generation: 2 } },
    { verdict: 'gone' },
  ],
]
for (const [title, found, expected] of rows)
  test(`a wait for generation 2 ${title}`, () => {
    expect(waitVerdict(found, { uid: 'u', generation: 2 })).toEqual(expected)
  })
