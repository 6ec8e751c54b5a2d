import { beforeEach, describe, expect, test } from 'vitest'
import { leasesPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import type { SimObject } from '../../test/kit/api-server/versions.ts'
import type { LabelSelector } from '../schemas/kubernetes.ts'
import {
  agentsIn,
  countedScope,
  type Ledger,
  ledgerAnnotation,
  queueIn,
  readLedger,
  selectorHash,
  writeLedger,
} from './ledger.ts'
import { ledgerLabels, ledgerName, skyhookScope } from './names.ts'
import { effectiveLimit } from './rule.ts'
import { type Leases, listScope } from './slot-reads.ts'
import type { Lease } from './slot.ts'

const demo = { name: 'demo', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }
const ledger: Ledger = {
  v: 1,
  skyhookUID: demo.uid,
  generation: 4,
  applied: '0123456789abcdef',
  selectorHash: 'feedfeedfeedfeed',
  agents: 812,
  waiters: 40,
  countedAt: '2026-11-20T14:00:00Z',
  compartments: { '': { matched: 50, completed: 12 }, gpu: { matched: 7, completed: 0 } },
}
const query = { skyhook: demo, selectorHash: ledger.selectorHash }

const leaseWith = (text: string | undefined, name = ledgerName(demo)): Lease => ({
  metadata: {
    name,
    uid: 'l1',
    resourceVersion: '1',
    annotations: text === undefined ? {} : { [ledgerAnnotation]: text },
  },
})
const leaseOf = (change: Partial<Record<keyof Ledger, unknown>> = {}): Lease =>
  leaseWith(JSON.stringify({ ...ledger, ...change }))

describe('countedScope', () => {
  test.each<[string, readonly Lease[], unknown]>([
    ['how many nodes matched', [leaseOf()], { matched: 50 }],
    ['how many nodes matched beside times that are none', [leaseOf({ slotTimes: 'x' })], { matched: 50 }],
    ['nothing where there is none', [], { unknown: 'the census has not counted this Skyhook yet' }],
    [
      'nothing from that of another Skyhook of the name',
      [leaseWith(JSON.stringify(ledger), 'demo-99999999.ledger')],
      { unknown: /has not counted/ },
    ],
    [
      'nothing from one with the same first digits of the UID',
      [leaseOf({ skyhookUID: '3f2504e0-0' })],
      { unknown: /earlier Skyhook/ },
    ],
    [
      'nothing counted with another selector',
      [leaseOf({ selectorHash: 'x' })],
      { unknown: /since the selector changed.*generation 4/ },
    ],
    ['nothing from a newer version', [leaseOf({ v: 2 })], { unknown: /version 2.*upgrade/ }],
    ['nothing from malformed JSON', [leaseWith('{"v":1')], { unknown: /not valid JSON/ }],
    ['nothing from another document', [leaseWith('[]')], { unknown: /not a ledger/ }],
    [
      'nothing from a negative count',
      [leaseOf({ compartments: { '': { matched: -1 } } })],
      { unknown: /not a ledger/ },
    ],
    ['nothing from a Lease without the annotation', [leaseWith(undefined)], { unknown: /is missing/ }],
  ])('a node learns %s', (_, ledgers, expected) => {
    const unknown = (expected as { unknown?: string | RegExp }).unknown
    expect(countedScope(ledgers, query)).toEqual(
      unknown instanceof RegExp ? { unknown: expect.stringMatching(unknown) as string } : expected,
    )
  })

  test('a node that goes by a policy learns nothing from a ledger that was counted without one', () => {
    const policy = { uid: 'p', generation: 1, applied: ledger.applied }
    expect(countedScope([leaseOf()], { ...query, policy })).toEqual({
      unknown: 'the census has not opened a batch for the DeploymentPolicy yet',
    })
  })

  test('a node ignores fields of a later release', () => {
    const later = { ...ledger, new: true, compartments: { '': { matched: 50, completed: 1, epoch: 7, size: 4 } } }
    expect(countedScope([leaseWith(JSON.stringify(later))], query)).toEqual({ matched: 50 })
  })

  test('a node learns the count of its own compartment', () => {
    expect(countedScope([leaseOf()], { ...query, compartment: 'gpu' })).toEqual({ matched: 7 })
    expect(countedScope([leaseOf()], { ...query, compartment: 'arm' })).toEqual({
      unknown: expect.stringContaining('"arm"') as string,
    })
  })

  test('a percentage has a number only with a ledger', () => {
    expect(effectiveLimit({ percent: 33 }, countedScope([leaseOf()], query))).toBe(16)
    expect(effectiveLimit({ percent: 33 }, countedScope([], query))).toEqual({
      unknown: expect.any(String) as string,
    })
    expect(effectiveLimit({ count: 2 }, countedScope([], query))).toBe(2)
  })

  test('the queue is that of the count, and all selected nodes while other work was counted', () => {
    const queueQuery = { ...query, applied: ledger.applied }
    expect(queueIn([leaseOf()], queueQuery)).toEqual({ matched: 50, waiters: 40 })
    expect(queueIn([leaseOf({ waiters: 0 })], queueQuery)).toEqual({ matched: 50, waiters: 1 }) // who asks waits
    expect(queueIn([leaseOf({ applied: 'other' })], queueQuery)).toEqual({ matched: 50, waiters: 50 })
  })

  test.each([
    ['no ledger', []],
    ['the ledger of another Skyhook', [leaseOf({ skyhookUID: 'x' })]],
    ['the count of another selector', [leaseOf({ selectorHash: 'x' })]],
  ])('the queue is unknown with %s', (_, ledgers) => {
    expect(queueIn(ledgers, { ...query, applied: ledger.applied })).toBeUndefined()
  })

  test('the number of agents is that of any ledger that has one', () => {
    expect(agentsIn([leaseOf({ agents: undefined }), leaseOf()])).toBe(812)
    expect(agentsIn([])).toBeUndefined()
  })
})

describe('writeLedger', () => {
  let api: Sample
  let leases: Leases
  beforeEach(() => {
    api = sampleServer()
    leases = { transport: api.connect(), namespace: 'default', clock: api.clock }
  })

  async function written(found: Lease | undefined, change: Partial<Ledger> = {}): Promise<Lease> {
    const answer = await writeLedger(leases, { skyhook: demo, found }, { ...ledger, ...change })
    if (answer.outcome !== 'written') expect.unreachable(answer.outcome)
    return answer.lease
  }

  test('the LIST of an asking node finds a new ledger', async () => {
    await written(undefined)
    const { ledgers, slots } = await listScope(leases, skyhookScope(demo))
    expect(slots).toEqual([])
    expect(countedScope(ledgers, query)).toEqual({ matched: 50 })
    expect(ledgers[0]?.metadata.ownerReferences).toEqual([
      { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook', name: 'demo', uid: demo.uid },
    ])
  })

  test('a write replaces exactly the ledger that was read, and keeps what others wrote into it', async () => {
    const found = await written(undefined)
    const noted = {
      ...found,
      metadata: { ...found.metadata, annotations: { ...found.metadata.annotations, note: 'mine' } },
    }
    const next = await written(noted, { waiters: 0 })
    expect(next.metadata.annotations?.['note']).toBe('mine')
    expect(readLedger(next)).toEqual({ outcome: 'read', ledger: { ...ledger, waiters: 0 } })
    expect(await writeLedger(leases, { skyhook: demo, found }, ledger)).toEqual({ outcome: 'conflict' })
  })

  test('a write is a conflict when another census was first, or somebody deleted the ledger', async () => {
    const found = await written(undefined)
    expect(await writeLedger(leases, { skyhook: demo, found: undefined }, ledger)).toEqual({ outcome: 'conflict' })
    api.remove(leasesPath, ledgerName(demo))
    expect(await writeLedger(leases, { skyhook: demo, found }, ledger)).toEqual({ outcome: 'conflict' })
    expect(api.get(leasesPath, ledgerName(demo))).toBeUndefined()
  })

  test('a ledger that has lost its labels has them again after the next write, and is counted from there', async () => {
    await written(undefined)
    const before = api.get(leasesPath, ledgerName(demo)) as SimObject
    api.put(leasesPath, { ...before, metadata: { ...before.metadata, labels: {} } })
    expect(await writeLedger(leases, { skyhook: demo, found: undefined }, ledger)).toEqual({ outcome: 'conflict' })
    const { metadata } = api.get(leasesPath, ledgerName(demo)) as SimObject
    expect([metadata.labels, metadata.annotations]).toEqual([ledgerLabels(demo), before.metadata.annotations])
    expect((await listScope(leases, skyhookScope(demo))).ledgers).toHaveLength(1)
  })

  test('a write throws a refusal', async () => {
    api.fault(() => true, { kind: 'refuse', code: 403, reason: 'Forbidden' })
    await expect(writeLedger(leases, { skyhook: demo, found: undefined }, ledger)).rejects.toMatchObject({
      status: 403,
    })
  })
})

describe('selectorHash', () => {
  test.each<[string, LabelSelector | undefined, LabelSelector | undefined]>([
    ['an absent and an empty selector', undefined, {}],
    ['empty parts', {}, { matchLabels: {}, matchExpressions: [] }],
    ['labels in another order', { matchLabels: { a: '1', b: '2' } }, { matchLabels: { b: '2', a: '1' } }],
    [
      'requirements and values in another order',
      {
        matchExpressions: [
          { key: 'a', operator: 'Exists' },
          { key: 'b', operator: 'In', values: ['x', 'y'] },
        ],
      },
      {
        matchExpressions: [
          { key: 'b', operator: 'In', values: ['y', 'x'] },
          { key: 'a', operator: 'Exists', values: [] },
        ],
      },
    ],
  ])('the hash of a selector is the same for %s', (_, one, other) => {
    expect(selectorHash(one)).toBe(selectorHash(other))
    expect(selectorHash(one)).toMatch(/^[0-9a-f]{16}$/)
  })

  test.each<[string, LabelSelector, LabelSelector]>([
    ['a label that must be empty and no label at all', { matchLabels: { a: '' } }, {}],
    ['another value', { matchLabels: { a: '1' } }, { matchLabels: { a: '2' } }],
    [
      'another operator',
      { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
      { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] },
    ],
  ])('the hash of a selector differs for %s', (_, one, other) => {
    expect(selectorHash(one)).not.toBe(selectorHash(other))
  })
})
