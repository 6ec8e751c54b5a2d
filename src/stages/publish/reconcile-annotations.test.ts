import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'

const spec = { packages: { a: { version: '1.0.0', image: 'r/pkg' }, b: { version: '1.0.0', image: 'r/pkg' } } }
const countApplies = (node: NodeSimulator, name: string): number =>
  node.executedSteps.filter((line) => line.startsWith(`${name} apply `)).length
const countEvents = (node: NodeSimulator, type: string): number =>
  node.events.filter((event) => event.type === type).length

function removeEntry(node: NodeSimulator, key: string): void {
  node.edit((annotations) => {
    const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
    annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(
      Object.fromEntries(Object.entries(state).filter(([one]) => one !== key)),
    )
  })
}

function completedNode(): NodeSimulator {
  const node = new NodeSimulator()
  node.apply('s', spec)
  node.settleFor(5_000)
  expect(node.status()).toBe('complete')
  return node
}

/** Decides again and again before what it publishes arrives. */
function withDelayedPatches(node: NodeSimulator): void {
  node.arePatchesDelayed = true
  for (let round = 0; round < 50; round++) {
    node.nowMs += 100
    node.step()
  }
  node.arePatchesDelayed = false
  node.settleFor(5_000)
}

describe('edits before the answer arrives', () => {
  test('a removed entry counts as one edit', () => {
    const node = completedNode()
    removeEntry(node, 'b|1.0.0')
    withDelayedPatches(node)
    expect([countApplies(node, 'a'), countApplies(node, 'b'), countEvents(node, 'edited'), node.status()]).toEqual([
      1,
      2,
      1,
      'complete',
    ])
    removeEntry(node, 'b|1.0.0')
    node.settleFor(5_000)
    expect([countApplies(node, 'b'), countEvents(node, 'edited')]).toEqual([3, 2]) // the same edit later is another one
  })

  test('an edit of what the Node showed leaves the packages alone that it did not show yet', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: spec.packages.a } })
    node.settleFor(5_000)
    node.arePatchesDelayed = true
    node.apply('s', spec)
    for (let round = 0; round < 5; round++) node.step()
    removeEntry(node, 'a|1.0.0')
    withDelayedPatches(node)
    expect([countApplies(node, 'a'), countApplies(node, 'b'), node.status()]).toEqual([2, 1, 'complete'])
  })

  test('an edit counts that comes before the answer to another one', () => {
    const node = completedNode()
    node.arePatchesDelayed = true
    for (const key of ['a|1.0.0', 'b|1.0.0']) {
      removeEntry(node, key)
      node.step()
    }
    withDelayedPatches(node)
    expect([countApplies(node, 'a'), countApplies(node, 'b'), node.status()]).toEqual([2, 2, 'complete'])
  })

  test('a removed annotation counts as one edit', () => {
    const node = completedNode()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    withDelayedPatches(node)
    expect([countApplies(node, 'a'), countApplies(node, 'b'), countEvents(node, 'reset'), node.status()]).toEqual([
      2,
      2,
      1,
      'complete',
    ])
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleFor(5_000)
    expect([countApplies(node, 'a'), countEvents(node, 'reset')]).toEqual([3, 2])
  })
})

test('a reset stops the running step, starts nothing else of the old work, and then starts again', () => {
  const node = new NodeSimulator()
  node.hangingPackages.add('a')
  node.apply('s', spec)
  node.settleFor(3_000)
  expect(node.executedSteps.filter((line) => line.startsWith('a '))).toHaveLength(1)
  node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
  node.hangingPackages.clear()
  node.settleFor(5_000)
  expect([countApplies(node, 'a'), countApplies(node, 'b'), countEvents(node, 'reset'), node.status()]).toEqual([
    2,
    2,
    1,
    'complete',
  ])
})

describe('foreign companions', () => {
  test.each([
    ['of an earlier registration, before anything is published', '{"v":1,"rev":7,"sha256":"x","nodeUID":"node-uid"}'],
    ['with a revision that is not a number', '{"rev":1e309,"sha256":"x"}'],
    ['with reboots that are not counts', '{"rev":1,"sha256":"x","reboots":{"x/a":"many"}}'],
  ])('a companion %s changes nothing', (_, companion) => {
    const node = new NodeSimulator()
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/journal_s'] = companion
    })
    node.apply('s', spec)
    node.settleFor(5_000)
    expect([countApplies(node, 'a'), countEvents(node, 'reset'), node.status()]).toEqual([1, 0, 'complete'])
    expect(node.journal.skyhooks['s']?.reboots).toEqual({})
    expect(node.annotation('journal_s')).toMatch(/"rev":\d+,/)
  })
})
