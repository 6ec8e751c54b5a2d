import { expect, test } from 'vitest'
import { selectorHash } from '../../src/lease/ledger.ts'
import { ledgerLabels, ledgerName } from '../../src/lease/names.ts'
import { counted } from './counted.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

function publish(world: World, matched: number, selectors = sampleSpec().nodeSelectors): void {
  const skyhook = { name: 's', uid: world.server.object('skyhooks', undefined, 's')?.metadata.uid ?? '' }
  const ledger = {
    skyhookUID: skyhook.uid,
    selectorHash: selectorHash(selectors),
    compartments: { '': { matched } },
  }
  world.send('census:n1', 'POST', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases', {
    metadata: {
      name: ledgerName(skyhook),
      labels: ledgerLabels(skyhook),
      annotations: { 'skyhook.nvidia.com/ledger': JSON.stringify(ledger) },
    },
    spec: {},
  })
}

/** All that a census writes. */
function count(world: World): void {
  publish(world, 2)
  world.setStatus({ observedGeneration: world.generation() })
}

test('a Skyhook that is counted stays so without another write', async () => {
  const world = sampleWorld(counted)
  count(world)
  await world.pass(600)
  expect([world.violations, world.checks() > 0]).toEqual([[], true])
})

test.each<[string, (world: World) => void, RegExp]>([
  ['without a ledger', () => undefined, /^nobody counts s: the ledger says nothing, and 2 Nodes match$/],
  ['with another number', (world) => publish(world, 3), /the ledger says 3, and 2 Nodes match/],
  ['of another selector', (world) => publish(world, 2, {}), /the ledger is of another selector/],
  ['without a status', (world) => publish(world, 2), /the status is of generation none, and the spec of 1/],
])('a Skyhook %s is found while no census runs at all', async (_, prepare, message) => {
  const world = sampleWorld(counted)
  prepare(world)
  await world.pass(175)
  expect(world.violations).toEqual([])
  await world.pass(20)
  expect(world.violations[0]).toMatch(message)
})

test('an edit has to be counted again', async () => {
  const world = sampleWorld(counted)
  count(world)
  await world.pass(300)
  world.editSkyhook({ spec: { priority: 300 } })
  await world.pass(195)
  expect(world.violations[0]).toMatch(/the status is of generation 1, and the spec of 2/)
})

test('nobody has to count while no agent could, and a Node that is gone takes its agent along', async () => {
  const world = sampleWorld(counted)
  await world.pass(100)
  world.setHealthy('n2', false)
  await world.pass(5)
  world.deleteNode('n1')
  await world.pass(300)
  expect(world.violations).toEqual([])
  world.register('n1')
  await world.pass(170)
  expect(world.violations).toEqual([])
  await world.pass(30)
  expect(world.violations[0]).toMatch(/^nobody counts s/)
})

test('a Skyhook that selects no Node need not be counted', async () => {
  const world = sampleWorld(counted, { spec: sampleSpec({ nodeSelectors: { matchLabels: { pool: 'none' } } }) })
  await world.pass(400)
  expect(world.violations).toEqual([])
})

test('a Skyhook that names a policy has its status, and a ledger once the policy exists', async () => {
  const spec = sampleSpec({ deploymentPolicy: 'gone', interruptionBudget: {} })
  const world = sampleWorld(counted, { spec })
  world.setStatus({ observedGeneration: world.generation() })
  await world.pass(400)
  expect(world.violations).toEqual([])
  world.createPolicy('gone')
  await world.pass(175)
  expect(world.violations).toEqual([])
  await world.pass(20)
  expect(world.violations[0]).toMatch(/the ledger says nothing, and 2 Nodes match/)
})

test('a Skyhook that names a policy that does not exist, and has no status, is found', async () => {
  const world = sampleWorld(counted, { spec: sampleSpec({ deploymentPolicy: 'gone', interruptionBudget: {} }) })
  await world.pass(195)
  expect(world.violations[0]).toMatch(/the status is of generation none, and the spec of 1/)
})
