import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/support/node-simulator.ts'
import { pkg } from '../../../test/support/node-simulator-dsl.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'

const reboot: Interrupt = { type: 'reboot' }
const rebooting = (): Record<string, PackageSpec> => ({ a: { ...pkg('1.0.0'), interrupt: reboot } })

/** A node that is drained, with a step on its way to the reboot. */
function nodeAtWork(): NodeSimulator {
  const node = new NodeSimulator()
  node.hangingPackages.add('a')
  node.apply('s', { packages: rebooting() })
  node.settle()
  return node
}

test('started work keeps its slot when the budget has fallen and the agent starts again', () => {
  const node = nodeAtWork()
  const leases = node.slots.map(({ lease }) => lease)
  node.areSlotsConfirmed = false
  node.restartAgent()
  node.settle()
  expect([node.slots.map(({ lease }) => lease), leases]).toEqual([leases, ['s-uid.slot-0']])
  node.finishHanging('a')
  node.settleFor(20_000)
  expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
})
