import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  bootstrapScope,
  controlPlaneScope,
  indexedName,
  labelKeys,
  ledgerLabels,
  ledgerName,
  nodeSlotName,
  parseName,
  scopeSelector,
  skyhookScope,
  slotLabels,
} from './names.ts'

const demo = { name: 'demo', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }

describe('names that other programs rely on', () => {
  test('are exactly these', () => {
    expect(indexedName(skyhookScope(demo), 0)).toBe('demo-c5705e92.slot-0')
    expect(indexedName(skyhookScope(demo, 'GPU nodes'), 12)).toBe('demo.gpu-nodes-b5144d93.slot-12')
    expect(indexedName(bootstrapScope(demo, 'gpu'), 1)).toBe('demo.gpu-b3c2a226.bootstrap-1')
    expect(nodeSlotName(skyhookScope(demo), 'node-uid')).toBe('demo-c5705e92.node-a06b720e583ed990')
    expect(ledgerName(demo)).toBe('demo-3f2504e0.ledger')
    expect(indexedName(controlPlaneScope, 0)).toBe('control-plane.slot-0')
  })

  test('carry these labels', () => {
    expect(slotLabels(skyhookScope(demo, 'gpu'), 'recovery')).toEqual({
      'skyhook.nvidia.com/name': 'demo',
      'skyhook.nvidia.com/compartment': 'gpu',
      'skyhook.nvidia.com/scope': skyhookScope(demo, 'gpu').hash,
      'skyhook.nvidia.com/slot-kind': 'recovery',
    })
    expect(ledgerLabels(demo)).toMatchObject({ [labelKeys.slotKind]: 'ledger', [labelKeys.compartment]: '' })
  })

  test('are found by these selectors', () => {
    expect(scopeSelector(skyhookScope(demo))).toBe('skyhook.nvidia.com/name=demo,skyhook.nvidia.com/compartment=')
    expect(scopeSelector(skyhookScope(demo, 'gpu'))).toBe(
      'skyhook.nvidia.com/name=demo,skyhook.nvidia.com/compartment in (,gpu)',
    )
    expect(scopeSelector(controlPlaneScope)).toBe('skyhook.nvidia.com/scope=control-plane')
  })
})

describe('whatever Skyhook and compartment are called', () => {
  const nameArbitrary = fc
    .stringMatching(/^[a-z0-9]([a-z0-9.-]{0,51}[a-z0-9])?$/)
    .filter((name) => !/\.[.-]|-\./.test(name))
  const skyhookArbitrary = fc.record({ name: nameArbitrary, uid: fc.uuid() })
  const compartmentArbitrary = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.constantFrom('__default__', '', '-', 'a'.repeat(64)),
  )
  const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
  const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

  test('Lease names and label values are legal', () => {
    fc.assert(
      fc.property(
        skyhookArbitrary,
        compartmentArbitrary,
        fc.nat(65_535),
        fc.uuid(),
        (skyhook, compartment, index, nodeUid) => {
          const scope = skyhookScope(skyhook, compartment)
          for (const name of [
            indexedName(scope, index),
            indexedName(bootstrapScope(skyhook, compartment), index),
            nodeSlotName(scope, nodeUid),
            ledgerName(skyhook),
          ]) {
            expect(name).toMatch(subdomain)
            expect(name.length).toBeLessThanOrEqual(253)
          }
          for (const value of Object.values(slotLabels(scope, 'slot'))) {
            expect(value).toMatch(labelValue)
            expect(value.length).toBeLessThanOrEqual(63)
          }
        },
      ),
    )
  })

  test('names read back', () => {
    fc.assert(
      fc.property(
        skyhookArbitrary,
        compartmentArbitrary,
        fc.nat(65_535),
        fc.uuid(),
        (skyhook, compartment, index, nodeUid) => {
          const scope = skyhookScope(skyhook, compartment)
          const boot = bootstrapScope(skyhook, compartment)
          expect(parseName(indexedName(scope, index))).toEqual({
            is: 'indexed',
            kind: 'slot',
            scope: scope.hash,
            index,
          })
          expect(parseName(indexedName(boot, index))).toEqual({
            is: 'indexed',
            kind: 'bootstrap',
            scope: boot.hash,
            index,
          })
          expect(parseName(nodeSlotName(scope, nodeUid))).toMatchObject({ is: 'node', scope: scope.hash })
          expect(parseName(ledgerName(skyhook))).toMatchObject({ is: 'ledger' })
        },
      ),
    )
  })

  test('two compartments never share a scope or a label value', () => {
    fc.assert(
      fc.property(skyhookArbitrary, compartmentArbitrary, compartmentArbitrary, (skyhook, one, other) => {
        fc.pre(one !== other)
        expect(skyhookScope(skyhook, one).hash).not.toBe(skyhookScope(skyhook, other).hash)
        expect(skyhookScope(skyhook, one).labels.compartment).not.toBe(skyhookScope(skyhook, other).labels.compartment)
      }),
    )
  })
})

test.each([
  'node-1',
  'demo-9d4d4da5.slot-',
  'demo-9d4d4da5.slot-01',
  'demo-9d4d4da5.slot--1',
  'demo.slot-1',
  'skyhookd-census',
  '',
])('%o is no slot', (name) => {
  expect(parseName(name)).toBeUndefined()
})
