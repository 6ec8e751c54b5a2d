/**
 * Tests of the oracle: it must not miss a state that lasted for only one version, in whatever order the watches
 * reported it.
 */
import { describe, expect, test } from 'vitest'
import { emptyView, moments, type Version } from './moments.ts'
import { overBudget } from './slots.ts'

const metadata = (name: string, resourceVersion: number) => ({
  name,
  uid: name,
  resourceVersion: String(resourceVersion),
})
const labels = {
  'skyhook.nvidia.com/name': 'demo',
  'skyhook.nvidia.com/scope': '01234567',
  'skyhook.nvidia.com/slot-kind': 'slot',
}

function slot(type: Version['type'], index: number, resourceVersion: number): Version {
  const object = {
    metadata: { ...metadata(`demo-01234567.slot-${index}`, resourceVersion), labels },
    spec: { holderIdentity: `node-${index}` },
  }
  return { kind: 'leases', type, object, resourceVersion, atMs: 0 }
}

const faults = (versions: readonly Version[]): string[] =>
  [...moments(emptyView(), versions)].flatMap((moment) => overBudget('demo', 1)(moment) ?? [])

describe('two slots at once', () => {
  test('the history finds two concurrent slots although both are gone in the end', () => {
    expect(faults([slot('ADDED', 0, 1), slot('ADDED', 1, 2), slot('DELETED', 0, 3), slot('DELETED', 1, 4)])).toEqual([
      'slots held by node-0 and node-1',
    ])
  })

  test('the history sees no concurrency of consecutive slots, even if their events arrived out of order', () => {
    expect(faults([slot('ADDED', 1, 3), slot('ADDED', 0, 1), slot('DELETED', 0, 2)])).toEqual([])
  })
})

test('a moment of the history shows every kind as it was then', () => {
  const node: Version = {
    kind: 'nodes',
    type: 'ADDED',
    object: { metadata: metadata('node-0', 2) },
    resourceVersion: 2,
    atMs: 0,
  }
  const seen = [...moments(emptyView(), [node, slot('ADDED', 0, 1), slot('DELETED', 0, 3)])].map(
    ({ nodes, leases }) => [nodes.size, leases.size],
  )
  expect(seen).toEqual([
    [0, 1],
    [1, 1],
    [1, 0],
  ])
})
