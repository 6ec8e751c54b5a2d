import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { isCordoned, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { ignoreLabel } from '../../schemas/annotations.ts'
import type { OwnSlot } from '../model/snapshot.ts'

const phases = (node: NodeSimulator): string[] => node.slots.map(({ skyhook, phase }) => `${skyhook} ${phase}`)

/** What the ledger says about the batch of every slot. */
function setBatch(node: NodeSimulator, batch: NonNullable<OwnSlot['batch']>): void {
  node.slots = node.slots.map((slot) => ({ ...slot, batch }))
}

/** A node that has finished its work under a slot of a batch that is still open. */
function finishedNode(): NodeSimulator {
  const node = new NodeSimulator()
  node.hangingPackages.add('a')
  node.apply('s', { packages: { a: { ...pkg('1.0.0'), interrupt: reboot } } })
  node.settle()
  setBatch(node, 'open')
  node.finishHanging('a')
  node.settleFor(60_000)
  return node
}

test.each<[string, () => NodeSimulator]>([
  ['Ignored', () => new NodeSimulator({ [ignoreLabel]: 'true' })],
  [
    'TaintNotTolerated',
    () => {
      const node = new NodeSimulator()
      node.node = { ...node.node, spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoExecute' }] } }
      return node
    },
  ],
])('a node that is %s takes no place in a batch', (reason, start) => {
  const node = start()
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.settleFor(10_000)
  expect([node.status(), node.reason(), node.slots]).toEqual(['blocked', reason, []])
})

test('a complete node is back in service and keeps its slot until its batch is over', () => {
  const node = finishedNode()
  expect([node.status(), isCordoned(node), phases(node), node.reason()]).toEqual([
    'complete',
    false,
    ['s finished'],
    undefined,
  ])
  setBatch(node, 'over')
  node.settleFor(2_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('a node that waits for the end of its batch works for the next Skyhook', () => {
  const node = finishedNode()
  node.apply('t', { packages: { b: pkg('1.0.0') } })
  node.settleFor(10_000)
  expect([node.status('t'), phases(node)]).toEqual(['complete', ['s finished']])
})

test('new work gives the slot of the finished work back and asks for another one', () => {
  const node = finishedNode()
  const before = node.slots[0]?.uid
  node.hangingPackages.add('a')
  node.apply('s', { packages: { a: pkg('2.0.0') } })
  node.settleFor(2_000)
  expect([node.slots.map(({ uid }) => uid === before), phases(node)]).toEqual([[false], ['s working']])
})

test('a node that soaks reports its end after the soak', () => {
  const node = new NodeSimulator()
  node.hangingPackages.add('a')
  node.apply('s', { pace: { pauseSeconds: 20 }, packages: { a: pkg('1.0.0') } })
  node.settle()
  setBatch(node, 'open')
  node.finishHanging('a')
  node.settleFor(10_000)
  expect(phases(node)).toEqual(['s soaking'])
  node.settleFor(20_000)
  expect(phases(node)).toEqual(['s finished'])
})
