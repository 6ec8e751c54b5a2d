import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Fault } from '../../test/kit/api-server/faults.ts'
import { leasesPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import type { SimObject } from '../../test/kit/api-server/versions.ts'
import {
  indexedName,
  labelKeys,
  ledgerLabels,
  ledgerName,
  nodeSlotName,
  type Scope,
  skyhookScope,
  slotKinds,
  slotLabels,
} from './names.ts'
import type { Limit } from './rule.ts'
import { listScope, type Leases, type ScopeListing } from './slot-reads.ts'
import { isHeldBy, type NodeIdentity, type SlotProgress, type Slot } from './slot.ts'
import { acquire, confirm, type SlotRequest } from './slot-acquisition.ts'
import { createRecoverySlot } from './slot-creation.ts'
import { release, renew } from './slots.ts'

const demo = { name: 'demo', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }
const scope = skyhookScope(demo)
const working: SlotProgress = { phase: 'working', generation: 3, packages: ['tuning:1.1.0', 'shell:2'] }

let api: Sample
let leases: Leases

beforeEach(() => {
  api = sampleServer()
  api.clock.setWallMs(Date.UTC(2026, 10, 20, 13, 0, 0, 123))
  leases = { transport: api.connect(), namespace: 'default', clock: api.clock }
})

const node = (number: number): NodeIdentity => ({
  name: `node-${number}`,
  uid: `uid-of-node-${number}`,
  bootId: `boot-${number}`,
})
const request = (
  number: number,
  limit: Limit,
  progress: SlotProgress = { ...working, phase: 'cordoning' },
): SlotRequest => ({
  scope,
  node: node(number),
  progress,
  admissionFrom: () => ({ limit }),
})
async function acquireHeld(number: number, limit: Limit): Promise<Slot> {
  const got = await acquire(leases, request(number, limit))
  if (got.outcome !== 'held') expect.unreachable(JSON.stringify(got))
  return got.slot
}
const lease = (slot: Pick<Slot, 'name'>): SimObject | undefined => api.get(leasesPath, slot.name)
const refusedAsSecond = { kind: 'refuse', code: 422, reason: 'Invalid', message: 'one is enough' } as const
const isPost = ({ method }: { method: string }): boolean => method === 'POST'
const writesSince = (from: number): string[] =>
  api.sent.slice(from).map(({ method, path }) => `${method} ${path.slice(leasesPath.length)}`)

describe('acquire', () => {
  test('a request costs one LIST and one CREATE, and writes a Lease as documented', async () => {
    const slot = await acquireHeld(1, 1)
    expect(writesSince(0)).toEqual(['GET ', 'POST '])
    expect(api.sent[0]?.query).not.toHaveProperty('resourceVersion') // consistent, not from a cache
    expect(lease(slot)).toMatchObject({
      metadata: {
        name: indexedName(scope, 0),
        labels: slotLabels(scope, 'slot', 'node-1'),
        annotations: {
          'skyhook.nvidia.com/phase': 'cordoning',
          'skyhook.nvidia.com/generation': '3',
          'skyhook.nvidia.com/boot-id': 'boot-1',
          'skyhook.nvidia.com/node-uid': 'uid-of-node-1',
          'skyhook.nvidia.com/packages': 'tuning:1.1.0,shell:2',
        },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: 'uid-of-node-1' }],
      },
      spec: {
        holderIdentity: 'node-1',
        acquireTime: '2026-11-20T13:00:00.123000Z',
        renewTime: '2026-11-20T13:00:00.123000Z',
        leaseDurationSeconds: 120,
      },
    })
  })

  test('a second request returns the same slot and writes nothing', async () => {
    const slot = await acquireHeld(1, 2)
    const from = api.sent.length
    expect(await acquire(leases, request(1, 2))).toMatchObject({
      outcome: 'held',
      isNew: false,
      slot: { uid: slot.uid },
    })
    expect(writesSince(from)).toEqual(['GET '])
  })

  test('a request to a full scope waits, with what the LIST has shown', async () => {
    await acquireHeld(1, 2)
    await acquireHeld(2, 2)
    const got = await acquire(leases, request(3, 2))
    expect(got).toMatchObject({ outcome: 'waiting', reason: 'the budget of 2 nodes is used up' })
    expect((got as { listing: ScopeListing }).listing.slots.map(({ holder }) => holder).toSorted()).toEqual([
      'node-1',
      'node-2',
    ])
  })

  test('a request that was lost says which slot', async () => {
    api.fault(isPost, { kind: 'refuse', code: 409, reason: 'AlreadyExists' })
    const got = await acquire(leases, request(1, 1))
    expect(got).toMatchObject({ outcome: 'lost', lease: indexedName(scope, 0), listing: { slots: [] } })
  })

  test.each<[Limit, string]>([
    [0, ''],
    ['unlimited', 'POST '],
  ])('a request under the limit %j lists nothing', async (limit, requests) => {
    await acquire(leases, request(1, limit))
    expect(writesSince(0).join()).toBe(requests)
  })

  test('an unlimited slot that is there already is found without a LIST', async () => {
    const slot = await acquireHeld(1, 'unlimited')
    expect(await acquire(leases, request(1, 'unlimited'))).toMatchObject({ outcome: 'held', slot: { uid: slot.uid } })
  })

  test.each<[Limit, string]>([
    [0, 'the budget is 0'],
    [{ unknown: 'no census since noon' }, 'budget unknown: no census since noon'],
  ])('a request under the limit %j waits because %s', async (limit, reason) => {
    expect(await acquire(leases, request(1, limit))).toMatchObject({ outcome: 'waiting', reason })
    expect(api.sent.some(isPost)).toBe(false)
  })

  test('a slot without a limit has no index, and counts above every index once there is a limit', async () => {
    const slot = await acquireHeld(1, 'unlimited')
    expect(slot).toMatchObject({ kind: 'unlimited', index: Infinity, name: nodeSlotName(scope, 'node-1') })
    expect(await acquire(leases, request(2, 1))).toMatchObject({ outcome: 'waiting' })
    expect(await acquire(leases, request(2, 2))).toMatchObject({ outcome: 'held', slot: { index: 0 } })
  })

  test('the ledger comes with the same LIST, and the slot carries its epoch', async () => {
    api.put(leasesPath, {
      metadata: { name: ledgerName(demo), labels: ledgerLabels(demo), annotations: { n: '5' } },
    })
    const ledgerNames: string[] = []
    const got = await acquire(leases, {
      ...request(1, 1),
      admissionFrom: ({ ledgers }) => {
        ledgerNames.push(...ledgers.map(({ metadata }) => metadata.name))
        return { limit: 1, epoch: 7 }
      },
    })
    expect(ledgerNames).toEqual([ledgerName(demo)])
    expect(got).toMatchObject({ outcome: 'held', slot: { epoch: 7 } })
  })

  test('slots of an earlier Skyhook of the same name count until they are gone', async () => {
    const old = { ...request(1, 1), scope: skyhookScope({ ...demo, uid: 'an-earlier-one' }) }
    expect(await acquire(leases, old)).toMatchObject({ outcome: 'held' })
    expect(await acquire(leases, request(3, 1))).toMatchObject({
      outcome: 'waiting',
      listing: { slots: [{ holder: 'node-1' }] },
    })
    expect(await acquire(leases, request(3, 2))).toMatchObject({ outcome: 'held', slot: { index: 0 } })
  })

  test('slots of other compartments do not count, those of a compartment that is gone do', async () => {
    const inCompartment = (name: string, others: readonly string[]) => skyhookScope(demo, name, [name, ...others])
    await acquire(leases, { ...request(1, 1), scope: inCompartment('gpu', ['an odd name']) })
    await acquire(leases, { ...request(2, 1), scope: inCompartment('an odd name', ['gpu']) })
    const asCpu = (compartments: readonly string[], limit: number) =>
      acquire(leases, { ...request(3, limit), scope: inCompartment('cpu', compartments) })
    expect(await asCpu(['gpu'], 1)).toMatchObject({ outcome: 'waiting', listing: { slots: [{ holder: 'node-2' }] } })
    expect(await acquire(leases, request(3, 2))).toMatchObject({ outcome: 'waiting' }) // the policy is gone
    expect(await asCpu(['gpu', 'an odd name'], 1)).toMatchObject({ outcome: 'held', slot: { index: 0 } })
  })

  test('a slot counts also in the compartment that its node is in by now', async () => {
    const [zoneA, zoneB] = ['a', 'b'].map((name) => skyhookScope(demo, name, ['a', 'b', 'c'])) as [Scope, Scope]
    const got = await acquire(leases, { ...request(1, 1), scope: zoneA })
    if (got.outcome !== 'held') expect.unreachable(got.outcome)
    const inB = { ...request(2, 1), scope: zoneB }
    await renew(leases, got.slot, node(1), { ...working, currentCompartment: 'b' })
    expect(await acquire(leases, inB)).toMatchObject({ outcome: 'waiting' })
    expect(await acquire(leases, { ...request(3, 1), scope: zoneA })).toMatchObject({ outcome: 'waiting' })
    const inC = { ...request(4, 1), scope: skyhookScope(demo, 'c', ['a', 'b', 'c']) }
    expect(await acquire(leases, inC)).toMatchObject({ outcome: 'held' })
    await release(leases, got.slot, node(1))
    expect(await acquire(leases, inB)).toMatchObject({ outcome: 'held' })
  })

  test('a node counts once above the indices, whatever scopes its slots name', async () => {
    for (const uid of ['invented-1', 'invented-2', 'invented-3'])
      await acquire(leases, { ...request(1, 9), scope: skyhookScope({ ...demo, uid }) })
    await createRecoverySlot(leases, request(1, 9))
    expect(await acquire(leases, request(2, 1))).toMatchObject({ outcome: 'waiting' })
    expect(await acquire(leases, request(2, 2))).toMatchObject({ outcome: 'held', slot: { index: 0 } })
  })

  test('slots without a holder count each', async () => {
    for (const name of ['node-8', 'node-9'])
      api.put(leasesPath, {
        metadata: { name: nodeSlotName(scope, name), labels: slotLabels(scope, 'recovery', name) },
      })
    expect(await acquire(leases, request(1, 2))).toMatchObject({ outcome: 'waiting' })
  })

  test.each(slotKinds)('a Lease with the labels of a slot and the name of a ledger takes no room: %s', async (kind) => {
    api.put(leasesPath, {
      metadata: { name: 'x-deadbeef.ledger', labels: slotLabels(scope, kind, 'node-1') },
      spec: { holderIdentity: 'node-1' },
    })
    expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'held', slot: { index: 0 }, isNew: true })
  })

  test('an unreadable slot counts', async () => {
    api.put(leasesPath, {
      metadata: { name: 'by-hand', labels: { ...slotLabels(scope, 'slot', 'node-9'), [labelKeys.slotKind]: 'future' } },
    })
    expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'waiting' })
  })
})

describe('unclear answers to a CREATE', () => {
  test('a request is lost when another node was faster', async () => {
    api.fault(isPost, { kind: 'refuse', code: 409, reason: 'AlreadyExists' })
    expect(await acquire(leases, request(1, 1))).toMatchObject({
      outcome: 'lost',
      reason: `another node took ${indexedName(scope, 0)}`,
    })
  })

  test('a request whose answer was lost finds the slot and holds it', async () => {
    api.fault(isPost, { kind: 'lose-answer' })
    expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'held', slot: { index: 0 } })
  })

  test.each([{ kind: 'lose-request' }, { kind: 'refuse', code: 500 }, { kind: 'refuse', code: 429 }] as const)(
    '$kind $code and nothing there: unknown',
    async (fault) => {
      api.fault(isPost, fault)
      expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'unknown' })
      expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'held' })
    },
  )

  test('a request that a policy refuses is rejected with the message of the server', async () => {
    api.fault(isPost, { kind: 'refuse', code: 403, message: 'not your node' })
    expect(await acquire(leases, request(1, 1))).toMatchObject({
      outcome: 'rejected',
      reason: 'the API server rejected the slot: not your node',
    })
  })

  test('a request that is refused because its own slot has come through late holds that one', async () => {
    const slot = await acquireHeld(1, 3)
    const late = structuredClone(lease(slot)) as SimObject
    api.remove(leasesPath, slot.name)
    api.fault((asked) => isPost(asked) && api.put(leasesPath, late) !== undefined, refusedAsSecond)
    expect(await acquire(leases, request(1, 3))).toMatchObject({
      outcome: 'held',
      isNew: false,
      slot: { name: slot.name },
    })
    expect((await listScope(leases, scope)).slots).toHaveLength(1)
  })

  test('a recovery slot that is refused because its own slot has come through late is that one', async () => {
    await acquireHeld(1, 3)
    api.fault(isPost, refusedAsSecond)
    expect(await createRecoverySlot(leases, request(1, 3))).toMatchObject({ outcome: 'held', slot: { kind: 'slot' } })
  })

  test('a refused request of a node without a slot is repeated once, then it is rejected with the message', async () => {
    api.fault(isPost, refusedAsSecond)
    expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'held', isNew: true })
    api.fault(isPost, refusedAsSecond, 2)
    expect(await acquire(leases, request(2, 2))).toMatchObject({
      outcome: 'rejected',
      reason: 'the API server rejected the slot: one is enough',
    })
  })

  test('a failed LIST admits nobody', async () => {
    api.fault(({ method }) => method === 'GET', { kind: 'refuse', code: 403 })
    expect(await acquire(leases, request(1, 1))).toMatchObject({ outcome: 'unknown', error: { status: 403 } })
    expect(api.sent.some(isPost)).toBe(false)
  })

  test('a slot whose CREATE came through late is given back beside the one in hand', async () => {
    const slot = await acquireHeld(1, 3)
    api.put(leasesPath, {
      ...structuredClone(lease(slot)),
      metadata: { ...lease(slot)?.metadata, name: indexedName(scope, 1) + '0' },
    })
    expect(await acquire(leases, request(1, 3))).toMatchObject({ outcome: 'held', slot: { uid: slot.uid } })
    expect((await listScope(leases, scope)).slots).toHaveLength(1)
  })
})

describe('renew', () => {
  test('a renewal is one PUT with uid and resourceVersion that keeps what others wrote', async () => {
    const slot = await acquireHeld(1, 1)
    const from = api.sent.length
    const renewed = await renew(leases, slot, node(1), { ...working, phase: 'rebooting' })
    expect(renewed).toMatchObject({ outcome: 'held', slot: { phase: 'rebooting' } })
    expect(writesSince(from)).toEqual([`PUT /${slot.name}`])
    expect(api.sent.at(-1)?.body).toMatchObject({
      metadata: { uid: slot.uid, resourceVersion: slot.resourceVersion },
    })
    expect(lease(slot)).toMatchObject({ spec: { leaseDurationSeconds: 1800 } })
  })

  test('a renewal succeeds after somebody else wrote into the Lease, and keeps that', async () => {
    const slot = await acquireHeld(1, 1)
    const existing = lease(slot) as SimObject
    api.put(leasesPath, {
      ...existing,
      metadata: {
        ...existing.metadata,
        annotations: { ...(existing.metadata['annotations'] as object), note: 'mine' },
      },
    })
    expect(await renew(leases, slot, node(1), working)).toMatchObject({ outcome: 'held', slot: { phase: 'working' } })
    expect(lease(slot)).toMatchObject({ metadata: { annotations: { note: 'mine' } } })
  })

  test('a renewal puts back the label by which the node finds its slot', async () => {
    const slot = await acquireHeld(1, 1)
    const existing = lease(slot) as SimObject
    const { [labelKeys.node]: _, ...labels } = slotLabels(scope, 'slot', 'node-1')
    api.put(leasesPath, { ...existing, metadata: { ...existing.metadata, labels } })
    const [unlabelled] = (await listScope(leases, scope)).slots.filter((slot) => isHeldBy(slot, node(1)))
    await renew(leases, unlabelled as Slot, node(1), working)
    expect(lease(slot)).toMatchObject({ metadata: { labels: slotLabels(scope, 'slot', 'node-1') } })
  })

  test.each(Object.values(labelKeys))('a renewal puts back the label %s that a person has taken off', async (key) => {
    const slot = await acquireHeld(1, 1)
    const existing = lease(slot) as SimObject
    const { [key]: _, ...labels } = existing.metadata.labels as Record<string, string>
    api.put(leasesPath, { ...existing, metadata: { ...existing.metadata, labels } })
    expect(await renew(leases, slot, node(1), working)).toMatchObject({ outcome: 'held', slot: { uid: slot.uid } })
    expect(lease(slot)).toMatchObject({ metadata: { labels: slotLabels(scope, 'slot', 'node-1') } })
    expect((await listScope(leases, scope)).slots).toHaveLength(1)
  })

  test('a renewal succeeds after a PUT whose answer was lost', async () => {
    const slot = await acquireHeld(1, 1)
    api.fault(({ method }) => method === 'PUT', { kind: 'lose-answer' })
    expect(await renew(leases, slot, node(1), working)).toMatchObject({ outcome: 'unknown' })
    expect(await renew(leases, slot, node(1), working)).toMatchObject({ outcome: 'held' })
  })

  test('a renewal never recreates a deleted slot', async () => {
    const slot = await acquireHeld(1, 1)
    api.remove(leasesPath, slot.name)
    expect(await renew(leases, slot, node(1), working)).toMatchObject({
      outcome: 'lost',
      reason: `Lease ${slot.name} was deleted`,
    })
    expect(lease(slot)).toBeUndefined()
  })

  test('a renewal never writes into the slot of another node, nor into another slot of the same name', async () => {
    const slot = await acquireHeld(1, 1)
    api.remove(leasesPath, slot.name)
    const theirs = await acquireHeld(2, 1)
    expect(theirs.name).toBe(slot.name)
    expect(await renew(leases, slot, node(1), working)).toEqual({
      outcome: 'lost',
      reason: `Lease ${slot.name} is held by node-2 now`,
    })
    api.remove(leasesPath, slot.name)
    await acquireHeld(1, 1)
    expect(await renew(leases, slot, node(1), working)).toMatchObject({ outcome: 'lost' })
  })
})

describe('confirm', () => {
  test('a slot that would still be granted stays held', async () => {
    const slot = await acquireHeld(1, 2)
    await acquireHeld(2, 2)
    expect(await confirm(leases, slot, request(1, 2))).toMatchObject({ outcome: 'held' })
  })

  test('the upper of two holders yields when the budget falls to 1', async () => {
    const [one, two] = [await acquireHeld(1, 2), await acquireHeld(2, 2)]
    const [lower, upper] = one.index < two.index ? [1, 2] : [2, 1]
    const slotOf = (number: number): Slot => (number === 1 ? one : two)
    expect(await confirm(leases, slotOf(upper), request(upper, 1))).toMatchObject({
      outcome: 'yield',
      reason: 'the budget fell to 1 while 2 slots were held',
    })
    await release(leases, slotOf(upper), node(upper))
    expect(await confirm(leases, slotOf(lower), request(lower, 1))).toMatchObject({ outcome: 'held' })
  })

  test.each<[string, ReturnType<SlotRequest['admissionFrom']>]>([
    ['the census fell silent', { limit: { unknown: 'no census' } }],
    ['its batch is over', { limit: 5, epoch: 2 }],
  ])('a holder yields when %s', async (_, admission) => {
    const slot = await acquireHeld(1, 1)
    expect(await confirm(leases, slot, { ...request(1, 1), admissionFrom: () => admission })).toMatchObject({
      outcome: 'yield',
    })
  })

  test('a slot that a person deleted is lost, and a failed LIST leaves that unknown', async () => {
    const slot = await acquireHeld(1, 1)
    api.fault(() => true, { kind: 'refuse', code: 500 })
    expect(await confirm(leases, slot, request(1, 1))).toMatchObject({ outcome: 'unknown' })
    api.remove(leasesPath, slot.name)
    expect(await confirm(leases, slot, request(1, 1))).toMatchObject({ outcome: 'lost' })
  })
})

describe('release', () => {
  test('a release deletes exactly this slot', async () => {
    const slot = await acquireHeld(1, 1)
    expect(await release(leases, slot, node(1))).toEqual({ outcome: 'released' })
    expect(api.sent.at(-1)?.body).toMatchObject({
      preconditions: { uid: slot.uid, resourceVersion: slot.resourceVersion },
    })
    expect(lease(slot)).toBeUndefined()
    expect(await release(leases, slot, node(1))).toEqual({ outcome: 'released' })
  })

  test('a release follows a renewal in between', async () => {
    const slot = await acquireHeld(1, 1)
    await renew(leases, slot, node(1), working)
    expect(await release(leases, slot, node(1))).toEqual({ outcome: 'released' })
    expect(lease(slot)).toBeUndefined()
  })

  test('a release leaves the slot that another node has meanwhile', async () => {
    const slot = await acquireHeld(1, 1)
    api.remove(leasesPath, slot.name)
    await acquireHeld(2, 1)
    expect(await release(leases, slot, node(1))).toEqual({
      outcome: 'lost',
      reason: `Lease ${slot.name} is held by node-2 now`,
    })
    expect(lease(slot)).toBeDefined()
  })

  test('a release that was done without an answer is done', async () => {
    const slot = await acquireHeld(1, 1)
    api.fault(({ method }) => method === 'DELETE', { kind: 'lose-answer' })
    expect(await release(leases, slot, node(1))).toEqual({ outcome: 'released' })
    expect(lease(slot)).toBeUndefined()
  })

  test.each([{ kind: 'lose-request' }, { kind: 'refuse', code: 500 }] as const)(
    'a release that met $kind $code and was not done stays unknown, and is done when it is repeated',
    async (fault) => {
      const slot = await acquireHeld(1, 1)
      api.fault(({ method }) => method === 'DELETE', fault)
      expect(await release(leases, slot, node(1))).toMatchObject({ outcome: 'unknown' })
      expect(await release(leases, slot, node(1))).toEqual({ outcome: 'released' })
      expect(lease(slot)).toBeUndefined()
    },
  )

  test('a release without a server stays unknown', async () => {
    const slot = await acquireHeld(1, 1)
    api.server.stop()
    expect(await release(leases, slot, node(1))).toMatchObject({ outcome: 'unknown' })
    api.server.start()
  })
})

describe('recovery', () => {
  test('a recovery slot takes room without asking, and nobody enters until the sum is below the budget', async () => {
    await acquireHeld(1, 1)
    expect(await createRecoverySlot(leases, request(2, 1))).toMatchObject({
      outcome: 'held',
      isNew: true,
      slot: { kind: 'recovery', index: Infinity },
    })
    expect(await createRecoverySlot(leases, request(2, 1))).toMatchObject({ outcome: 'held' })
    expect(await acquire(leases, request(3, 2))).toMatchObject({
      outcome: 'waiting',
      reason: 'the budget of 2 nodes is used up',
    })
    expect(await acquire(leases, request(3, 3))).toMatchObject({ outcome: 'held', slot: { index: 1 } })
  })

  test('a recovery slot replaces that of an earlier registration of the node', async () => {
    await createRecoverySlot(leases, request(1, 1))
    const reregistered = { ...node(1), uid: 'new-uid' }
    const from = api.sent.length
    expect(await createRecoverySlot(leases, { ...request(1, 1), node: reregistered })).toMatchObject({
      outcome: 'held',
      slot: { nodeUid: 'new-uid' },
    })
    const name = nodeSlotName(scope, 'node-1')
    expect(writesSince(from)).toEqual(['POST ', `GET /${name}`, `DELETE /${name}`, 'POST '])
    expect((await listScope(leases, scope)).slots).toMatchObject([{ nodeUid: 'new-uid' }])
  })

  test('a slot of an earlier registration of the node is not ours, and can be released', async () => {
    const slot = await acquireHeld(1, 3)
    const reregistered = { ...node(1), uid: 'new-uid' }
    expect(isHeldBy(slot, reregistered)).toBe(false)
    expect(await release(leases, slot, reregistered)).toEqual({ outcome: 'released' })
  })
})

test('the budget holds even if requests are lost, cut or refused, and every held slot has a Lease', async () => {
  const faultArbitrary = fc.constantFrom<Fault>(
    { kind: 'lose-answer' },
    { kind: 'lose-request' },
    { kind: 'fail-after-commit', code: 500 },
    { kind: 'refuse', code: 500 },
    { kind: 'refuse', code: 429 },
  )
  const actionArbitrary = fc.record({
    verb: fc.constantFrom('acquire', 'acquire', 'renew', 'release'),
    nodes: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
    fault: fc.option(fc.record({ fault: faultArbitrary, method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE') }), {
      nil: undefined,
    }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(actionArbitrary, { maxLength: 25 }),
      async (limit, actions) => {
        for (const { name } of (await listScope(leases, scope)).slots) api.remove(leasesPath, name)
        const heldByNode = new Map<number, Slot>()
        for (const { verb, nodes, fault } of actions) {
          let isInjected = fault === undefined
          if (fault !== undefined)
            api.fault(({ method }) => !isInjected && (isInjected = method === fault.method), fault.fault)
          await Promise.all(
            nodes.map(async (number) => {
              const ownSlot = heldByNode.get(number)
              if (verb === 'acquire') {
                const got = await acquire(leases, request(number, limit))
                if (got.outcome === 'held') heldByNode.set(number, got.slot)
              } else if (ownSlot !== undefined && verb === 'renew') {
                const got = await renew(leases, ownSlot, node(number), working)
                expect(got.outcome).not.toBe('lost') // nobody takes a slot from anybody
                if (got.outcome === 'held') heldByNode.set(number, got.slot)
              } else if (ownSlot !== undefined) {
                const got = await release(leases, ownSlot, node(number))
                expect(got.outcome).not.toBe('lost')
                if (got.outcome === 'released') heldByNode.delete(number)
              }
            }),
          )
          isInjected = true
          const { slots } = await listScope(leases, scope)
          expect(slots.length).toBeLessThanOrEqual(limit)
          for (const [number, slot] of heldByNode)
            expect(slots.some(({ uid, holder }) => uid === slot.uid && holder === `node-${number}`)).toBe(true)
        }
      },
    ),
    { numRuns: 60 },
  )
})
