import { expect, test } from 'vitest'
import { builderOf, settings } from '../../../test/kit/objects/plan-builder.ts'
import type { OwnSlot, PreparationDepth } from '../model/snapshot.ts'
import { preparationDepth } from './plan-skyhook.ts'

const slot: OwnSlot = {
  scope: 'skyhook',
  uid: 'lease-uid',
  isFormer: false,
  skyhook: 's',
  skyhookUid: 's-uid',
  lease: 's.slot-0',
  phase: 'preparing',
  ownership: 'seen',
  renewedAtMs: 1_000,
}

const soaking: OwnSlot = { ...slot, phase: 'soaking' }

type Situation = {
  readonly distant?: string
  readonly slot?: OwnSlot
  readonly hasStarted?: boolean
  readonly isJoining?: boolean
}

test.each<[string, Situation, PreparationDepth]>([
  ['is near its turn fetches layers', {}, 'layers'],
  ['is far from its turn does not', { distant: 's' }, 'manifest'],
  ['is far from the turn of another Skyhook fetches layers', { distant: 't' }, 'layers'],
  ['is far from its turn and holds a slot fetches layers', { distant: 's', slot }, 'layers'],
  ['is far from its turn and holds the slot of complete work does not', { distant: 's', slot: soaking }, 'manifest'],
  ['joins the cluster fetches layers, for it needs no line', { distant: 's', isJoining: true }, 'layers'],
  ['has lost the slot of started work fetches layers', { distant: 's', hasStarted: true }, 'layers'],
])('a node that %s', (_, { distant, slot: held, hasStarted, isJoining }, depth) => {
  const builder = builderOf({}, [], {
    distantSkyhooks: new Set(distant === undefined ? [] : [distant]),
    node: {
      metadata: { name: 'n', uid: 'node-uid', resourceVersion: '1' },
      spec: { taints: isJoining ? [settings.runtimeRequiredTaint] : [] },
    },
  })
  if (hasStarted) builder.record = { ...builder.record, lifecycle: { startedAtMs: 1, generation: 1 } }
  expect(preparationDepth(builder, held)).toBe(depth)
})
