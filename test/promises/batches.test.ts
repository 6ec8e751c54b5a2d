import { expect, test } from 'vitest'
import { ledgerAnnotation } from '../../src/lease/ledger.ts'
import { bootstrapScope, indexedName, ledgerLabels, ledgerName, skyhookScope } from '../../src/lease/names.ts'
import { firstBatch } from '../../src/lease/policy/batch.ts'
import { readStrategy } from '../../src/lease/policy/strategy.ts'
import { newLease } from '../../src/lease/slot.ts'
import { journalKey, statusKey } from '../../src/schemas/annotations.ts'
import type { BatchState } from '../../src/schemas/deployment-policy.ts'
import type { SlotPhase } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { batches } from './batches.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const spec = sampleSpec({ deploymentPolicy: 'p', interruptionBudget: {} })
const applied = appliedHash(spec)

function paced() {
  const world = sampleWorld(batches, { hosts: 3, spec })
  const { metadata } = world.server.object('skyhooks', undefined, 's') ?? { metadata: { uid: '' } }
  const skyhook = { name: 's', uid: metadata.uid }
  const scope = skyhookScope(skyhook, 'c')
  const ledgerOf = (batch: Partial<BatchState>, change: object) => ({
    v: 1,
    skyhookUID: skyhook.uid,
    generation: 1,
    applied,
    selectorHash: '',
    waiters: 0,
    compartments: {
      c: { matched: 3, completed: 0, batch: { ...firstBatch(readStrategy({ fixed: {} }), 1), ...batch } },
    },
    ...change,
  })
  return {
    ...world,
    hold(name: string, index: number, phase: SlotPhase, epoch = 1, of = skyhookScope) {
      const node = { name, uid: world.uidOf(name), bootId: 'b' }
      const lease = newLease(of(skyhook, 'c'), { index }, node, { phase, generation: 1, epoch, packages: [] }, 0)
      world.send(`agent:${name}`, 'POST', leasesPath, lease)
    },
    giveBack: (name: string, index = 0) =>
      world.send(`agent:${name}`, 'DELETE', `${leasesPath}/${indexedName(scope, index)}`),
    publish(batch: Partial<BatchState> = {}, change: object = {}) {
      const annotations = { [ledgerAnnotation]: JSON.stringify(ledgerOf(batch, change)) }
      const name = ledgerName(skyhook)
      const isThere = world.server.object('leases', 'skyhook', name) !== undefined
      const body = { metadata: { name, labels: ledgerLabels(skyhook), annotations } }
      world.send('census:n1', isThere ? 'PATCH' : 'POST', isThere ? `${leasesPath}/${name}` : leasesPath, body)
    },
    complete: (name: string) =>
      world.annotate(name, {
        [statusKey('s')]: 'complete',
        [journalKey('s')]: JSON.stringify({ v: 1, rev: 1, sha256: '', nodeUID: world.uidOf(name), applied }),
      }),
  }
}

test('a batch that is over with the results of all its nodes is as promised', () => {
  const world = paced()
  world.publish()
  world.hold('n1', 0, 'finished')
  world.hold('n2', 1, 'failed')
  world.publish({ epoch: 2, completed: 1, failed: 1 })
  world.giveBack('n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('a batch that is over beside a node at work is a violation', () => {
  const world = paced()
  world.publish()
  world.hold('n1', 0, 'working')
  world.publish({ epoch: 2 })
  expect(world.violations).toEqual(['c passes epoch 1 while n1 is working in it'])
})

test('a result of an earlier batch that is counted again is a violation', () => {
  const world = paced()
  world.publish({ epoch: 2 })
  world.hold('n1', 0, 'failed', 1)
  world.hold('n2', 1, 'finished', 2)
  world.publish({ epoch: 3, completed: 1, failed: 1 })
  expect(world.violations).toEqual(['epoch 2 of c had 1 nodes, and 2 results were counted'])
})

test('an epoch that is left out is a violation', () => {
  const world = paced()
  world.publish()
  world.publish({ epoch: 3 })
  expect(world.violations).toEqual(['epoch 3 of c follows 1'])
})

test.each([
  ['for other work', { applied: 'other' }],
  ['after a reset', { reset: 'monday' }],
])('a batch that ends %s has no results', (_, change) => {
  const world = paced()
  world.publish()
  world.hold('n1', 0, 'working')
  world.publish({ epoch: 2 }, change)
  expect(world.violations).toEqual([])
})

test('a node that is complete and gives its slot back before its batch is over is a violation', () => {
  const world = paced()
  world.publish()
  world.hold('n1', 0, 'finished')
  world.complete('n1')
  world.giveBack('n1')
  expect(world.violations[0]).toMatch(/^n1 is complete and gives back s\.c-[0-9a-f]{8}\.slot-0 of the open epoch 1$/)
})

test('a slot that is taken on a LIST from after the stop is a violation, one from before is not', () => {
  const world = paced()
  world.publish()
  world.listSlots('n1')
  world.publish({ stopped: true })
  world.hold('n1', 0, 'working')
  expect(world.violations).toEqual([])
  world.listSlots('n2')
  world.hold('n2', 1, 'working')
  expect(world.violations).toEqual([expect.stringContaining('although the rollout is stopped')])
})

test('a joining node that takes a slot on a LIST from after a stop is found', () => {
  const world = paced()
  world.publish({ stopped: true })
  world.listSlots('n1')
  world.hold('n1', 0, 'preparing', 1, bootstrapScope)
  expect(world.violations).toEqual([expect.stringContaining('although the rollout is stopped')])
})
