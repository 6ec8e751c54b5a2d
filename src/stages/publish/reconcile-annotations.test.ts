import { describe, expect, test } from 'vitest'
import { NodeModel } from '../../../test/support/node-simulator.ts'

const spec = { packages: { a: { version: '1.0.0', image: 'r/pkg' }, b: { version: '1.0.0', image: 'r/pkg' } } }
const applies = (node: NodeModel, name: string): number => node.ran.filter((line) => line.startsWith(`${name} apply `)).length
const told = (node: NodeModel, type: string): number => node.events.filter((event) => event.type === type).length

function withoutEntry(node: NodeModel, key: string): void {
  node.edit((annotations) => {
    const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
    annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(Object.fromEntries(Object.entries(state).filter(([one]) => one !== key)))
  })
}

function completed(): NodeModel {
  const node = new NodeModel()
  node.apply('s', spec)
  node.settleOver(5_000)
  expect(node.status()).toBe('complete')
  return node
}

/** Decides again and again before what it publishes arrives. */
function whileNothingArrives(node: NodeModel): void {
  node.holdPatches = true
  for (let round = 0; round < 50; round++) {
    node.nowMs += 100
    node.step()
  }
  node.holdPatches = false
  node.settleOver(5_000)
}

describe("a person's edit is one, however often it is decided before the answer to it is there", () => {
  test('an entry that is gone', () => {
    const node = completed()
    withoutEntry(node, 'b|1.0.0')
    whileNothingArrives(node)
    expect([applies(node, 'a'), applies(node, 'b'), told(node, 'edited'), node.status()]).toEqual([1, 2, 1, 'complete'])
    withoutEntry(node, 'b|1.0.0')
    node.settleOver(5_000)
    expect([applies(node, 'b'), told(node, 'edited')]).toEqual([3, 2]) // the same edit later is another one
  })

  test('the whole annotation', () => {
    const node = completed()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    whileNothingArrives(node)
    expect([applies(node, 'a'), applies(node, 'b'), told(node, 'reset'), node.status()]).toEqual([2, 2, 1, 'complete'])
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleOver(5_000)
    expect([applies(node, 'a'), told(node, 'reset')]).toEqual([3, 2])
  })
})

test('a reset stops the running step, starts nothing more of the old, and then begins anew', () => {
  const node = new NodeModel()
  node.hangs.add('a')
  node.apply('s', spec)
  node.settleOver(3_000)
  expect(node.ran.filter((line) => line.startsWith('a '))).toHaveLength(1)
  node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
  node.hangs.clear()
  node.settleOver(5_000)
  expect([applies(node, 'a'), applies(node, 'b'), told(node, 'reset'), node.status()]).toEqual([2, 2, 1, 'complete'])
})

describe('a companion that is none of ours', () => {
  test.each([
    ['of an earlier life, before anything is published', '{"v":1,"rev":7,"sha256":"x","nodeUID":"node-uid"}'],
    ['with a revision that is no number', '{"rev":1e309,"sha256":"x"}'],
    ['with reboots that are no counts', '{"rev":1,"sha256":"x","reboots":{"x/a":"many"}}'],
  ])('%s changes nothing', (_, companion) => {
    const node = new NodeModel()
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/journal_s'] = companion
    })
    node.apply('s', spec)
    node.settleOver(5_000)
    expect([applies(node, 'a'), told(node, 'reset'), node.status()]).toEqual([1, 0, 'complete'])
    expect(node.journal.skyhooks['s']?.reboots).toEqual({})
    expect(node.annotation('journal_s')).toMatch(/"rev":\d+,/)
  })
})
