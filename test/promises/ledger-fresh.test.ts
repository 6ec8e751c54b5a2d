import { expect, test } from 'vitest'
import { selectorHash } from '../../src/lease/ledger.ts'
import { ledgerLabels, ledgerName } from '../../src/lease/names.ts'
import { ledgerFresh } from './ledger-fresh.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

type World = ReturnType<typeof sampleWorld>

const census = (world: World, event: 'agentStarted' | 'agentEnded'): void =>
  world.tell('n1', { event, process: 2, kind: 'census' })

function publish(world: World, matched: number): void {
  const skyhook = { name: 's', uid: world.server.object('skyhooks', undefined, 's')?.metadata.uid ?? '' }
  const ledger = {
    skyhookUID: skyhook.uid,
    selectorHash: selectorHash(sampleSpec().nodeSelectors),
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

test('a ledger that says what the Nodes are is fresh', async () => {
  const world = sampleWorld(ledgerFresh)
  census(world, 'agentStarted')
  publish(world, 2)
  await world.pass(300)
  expect([world.violations, world.checks() > 0]).toEqual([[], true])
})

test.each([3, undefined])('a ledger that says %s instead of two is found', async (matched) => {
  const world = sampleWorld(ledgerFresh)
  census(world, 'agentStarted')
  if (matched !== undefined) publish(world, matched)
  await world.pass(115)
  expect(world.violations).toEqual([])
  await world.pass(20)
  expect(world.violations[0]).toBe(`the ledger of s says ${matched ?? 'nothing'}, and 2 Nodes match`)
})

test('a ledger may be old while no census lives', async () => {
  const world = sampleWorld(ledgerFresh)
  census(world, 'agentStarted')
  census(world, 'agentEnded')
  await world.pass(300)
  expect(world.violations).toEqual([])
})

test('a Skyhook that names a policy has a fresh ledger once the policy exists, and none before', async () => {
  const world = sampleWorld(ledgerFresh, { spec: sampleSpec({ deploymentPolicy: 'gone', interruptionBudget: {} }) })
  census(world, 'agentStarted')
  await world.pass(300)
  expect(world.violations).toEqual([])
  world.createPolicy('gone')
  await world.pass(115)
  expect(world.violations).toEqual([])
  await world.pass(20)
  expect(world.violations[0]).toBe('the ledger of s says nothing, and 2 Nodes match')
})
