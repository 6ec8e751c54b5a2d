import { expect, test } from 'vitest'
import type { KubernetesNode } from '../schemas/kubernetes.ts'
import { patchedNode } from './node-writer.ts'

const ready = { type: 'Ready', status: 'True' } as const
const ours = { type: 'skyhook.nvidia.com/s/NotReady', status: 'True' } as const
const node: KubernetesNode = {
  metadata: { name: 'n', uid: 'u', resourceVersion: '1', annotations: { theirs: '1' } },
  spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] },
  status: { conditions: [ready, ours], addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
}
const none = { annotations: {}, labels: {}, conditions: [], removedConditions: [] }
const metadata = { ...node.metadata, resourceVersion: '2', annotations: { theirs: '1', ours: '2' } }

test('a cordon leaves taints and status as they are', () => {
  expect(patchedNode(node, { ...none, annotations: { ours: '2' }, unschedulable: true }, metadata)).toEqual({
    ...node,
    metadata,
    spec: { taints: [{ key: 'k', effect: 'NoSchedule' }], unschedulable: true },
  })
})

test('taints are replaced as a whole', () => {
  expect(patchedNode(node, { ...none, taints: [] }, metadata).spec).toEqual({ taints: [] })
})

test('conditions are set and removed by their type, and others stay', () => {
  const changed = { ...ours, status: 'False' } as const
  const conditionsAfter = (change: object) => patchedNode(node, { ...none, ...change }, metadata).status?.conditions
  expect(conditionsAfter({ conditions: [changed] })).toEqual([ready, changed])
  expect(conditionsAfter({ removedConditions: [ours.type] })).toEqual([ready])
})
