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
  ownSlotsSelector,
  parseIndexedName,
  scopeSelector,
  selectorWithControlPlane,
  skyhookScope,
  slotLabels,
} from './names.ts'

const demo = { name: 'demo', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }

describe('public names', () => {
  test('Leases have exactly these names', () => {
    expect(indexedName(skyhookScope(demo), 0)).toBe('demo-c5705e92.slot-0')
    expect(indexedName(skyhookScope(demo, 'GPU nodes'), 12)).toBe('demo.gpu-nodes-b5144d93.slot-12')
    expect(indexedName(bootstrapScope(demo, 'gpu'), 1)).toBe('demo.gpu-b3c2a226.bootstrap-1')
    expect(nodeSlotName(skyhookScope(demo), 'ip-10-0-0-1.ec2.internal')).toBe(
      'demo-c5705e92.node-ip-10-0-0-1.ec2.internal',
    )
    expect(nodeSlotName(skyhookScope(demo), `${'n'.repeat(52)}.${'n'.repeat(20)}`)).toMatch(
      /^demo-c5705e92\.node-n{52}\.x-[0-9a-f]{8}$/,
    )
    expect(nodeSlotName(controlPlaneScope, 'cp-1')).toBe('control-plane.node-cp-1')
    expect(ledgerName(demo)).toBe('demo-3f2504e0.ledger')
    expect(indexedName(controlPlaneScope, 0)).toBe('control-plane.slot-0')
  })

  test('Leases carry these labels', () => {
    expect(slotLabels(skyhookScope(demo, 'gpu'), 'recovery', 'node-1')).toEqual({
      'skyhook.nvidia.com/name': 'demo',
      'skyhook.nvidia.com/compartment': 'gpu',
      'skyhook.nvidia.com/scope': skyhookScope(demo, 'gpu').hash,
      'skyhook.nvidia.com/slot-kind': 'recovery',
      'skyhook.nvidia.com/node': 'node-1',
      'skyhook.nvidia.com/node-shard': '1',
    })
    expect(ledgerLabels(demo)).toMatchObject({ [labelKeys.slotKind]: 'ledger', [labelKeys.compartment]: '' })
  })

  test('these selectors find the Leases of a scope', () => {
    expect(scopeSelector(skyhookScope(demo, 'gpu'))).toBe('skyhook.nvidia.com/name=demo')
    expect(selectorWithControlPlane(skyhookScope(demo))).toBe('skyhook.nvidia.com/name in (,demo)')
    expect(scopeSelector(controlPlaneScope)).toBe('skyhook.nvidia.com/scope=control-plane')
    expect(ownSlotsSelector('node-1')).toBe('skyhook.nvidia.com/node=node-1')
    expect(ownSlotsSelector('n'.repeat(64))).toBe(`skyhook.nvidia.com/node=${'n'.repeat(53)}x-ce068a19`)
  })
})

describe('any Skyhook and compartment', () => {
  const nameArbitrary = fc
    .stringMatching(/^[a-z0-9]([a-z0-9.-]{0,51}[a-z0-9])?$/)
    .filter((name) => !/\.[.-]|-\./.test(name))
  const skyhookArbitrary = fc.record({ name: nameArbitrary, uid: fc.uuid() })
  const compartmentArbitrary = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.constantFrom('__default__', '', '-', 'a'.repeat(64)),
  )
  const nodeNameArbitrary = fc.stringMatching(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,3}$/,
  )
  const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
  const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

  test('Lease names and label values are legal for any Skyhook and compartment', () => {
    fc.assert(
      fc.property(
        skyhookArbitrary,
        compartmentArbitrary,
        fc.nat(65_535),
        nodeNameArbitrary,
        (skyhook, compartment, index, nodeName) => {
          const scope = skyhookScope(skyhook, compartment)
          for (const name of [
            indexedName(scope, index),
            indexedName(bootstrapScope(skyhook, compartment), index),
            nodeSlotName(scope, nodeName),
            ledgerName(skyhook),
          ]) {
            expect(name).toMatch(subdomain)
            expect(name.length).toBeLessThanOrEqual(253)
          }
          for (const value of Object.values(slotLabels(scope, 'slot', nodeName))) {
            expect(value).toMatch(labelValue)
            expect(value.length).toBeLessThanOrEqual(63)
          }
        },
      ),
    )
  })

  test('kind and index read back from an indexed name, and from no other', () => {
    fc.assert(
      fc.property(
        skyhookArbitrary,
        compartmentArbitrary,
        fc.nat(65_535),
        nodeNameArbitrary,
        (skyhook, compartment, index, nodeName) => {
          const scope = skyhookScope(skyhook, compartment)
          const boot = bootstrapScope(skyhook, compartment)
          expect(parseIndexedName(indexedName(scope, index))).toEqual({ kind: 'slot', index })
          expect(parseIndexedName(indexedName(boot, index))).toEqual({ kind: 'bootstrap', index })
          expect(parseIndexedName(nodeSlotName(scope, nodeName))).toBeUndefined()
          expect(parseIndexedName(ledgerName(skyhook))).toBeUndefined()
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

test('two nodes never share a label value', () => {
  const long = fc.stringMatching(/^[a-z0-9]{1,80}$/).map((end) => `${'n'.repeat(60)}${end}`)
  fc.assert(
    fc.property(long, long, (one, other) => {
      fc.pre(one !== other)
      expect(ownSlotsSelector(one)).not.toBe(ownSlotsSelector(other))
    }),
  )
})

test.each([
  'node-1',
  'demo-9d4d4da5.slot-',
  'demo-9d4d4da5.slot-01',
  'demo-9d4d4da5.slot--1',
  'demo.slot-1',
  'skyhookd-census',
  '',
])('%o is not the name of an indexed slot', (name) => {
  expect(parseIndexedName(name)).toBeUndefined()
})
