/** Slots on a real API server: the behavior of its Leases, and many nodes that race for few slots. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { indexedName, ledgerLabels, ledgerName, type Scope, skyhookScope } from '../../src/lease/names.ts'
import { listScope, type Leases } from '../../src/lease/slot-reads.ts'
import type { NodeIdentity, SlotProgress, Slot } from '../../src/lease/slot.ts'
import { acquire, confirm, type SlotRequest } from '../../src/lease/slot-acquisition.ts'
import { createRecoverySlot, type AcquireOutcome } from '../../src/lease/slot-creation.ts'
import { release, renew } from '../../src/lease/slots.ts'
import type { ApiServer } from './api-server.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const working: SlotProgress = { phase: 'working', generation: 1, packages: ['shell:1.0.0'] }

let cluster: ApiServer
let leases: Leases

beforeAll(async () => {
  cluster = (await borrowChartCluster({ controllerManager: true })).server
  leases = { transport: cluster.admin, namespace: 'default', clock: systemClock }
})
afterAll(async () => await cluster?.stop())

async function createNode(name: string): Promise<NodeIdentity> {
  const node = await cluster.admin.json<KubeObject>('POST', '/api/v1/nodes', {
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name } },
  })
  return { name, uid: node.metadata.uid, bootId: randomUUID() }
}
const scopeOfTest = (): ReturnType<typeof skyhookScope> =>
  skyhookScope({ name: `s-${randomUUID().slice(0, 8)}`, uid: randomUUID() })
const request = (scope: SlotRequest['scope'], node: NodeIdentity, limit: number): SlotRequest => ({
  scope,
  node,
  progress: working,
  admissionFrom: () => ({ limit }),
})
function slotOf(got: AcquireOutcome): Slot {
  if (got.outcome !== 'held') expect.unreachable(JSON.stringify(got))
  return got.slot
}

describe('one slot', () => {
  test('a slot is acquired, renewed, confirmed and released', async () => {
    const scope = scopeOfTest()
    const node = await createNode('n-life')
    const slot = slotOf(await acquire(leases, request(scope, node, 1)))
    const renewed = await renew(leases, slot, node, { ...working, phase: 'rebooting' })
    expect(renewed).toMatchObject({ outcome: 'held', slot: { phase: 'rebooting', uid: slot.uid } })
    expect(await confirm(leases, slot, request(scope, node, 1))).toMatchObject({ outcome: 'held' })
    expect((await listScope(leases, scope)).slots.map(({ name }) => name)).toEqual([indexedName(scope, 0)])
    expect(await release(leases, slot, node)).toEqual({ outcome: 'released' }) // its resourceVersion is outdated by now
    expect((await listScope(leases, scope)).slots).toEqual([])
  })

  test('a late renewal does not recreate a deleted slot', async () => {
    const scope = scopeOfTest()
    const node = await createNode('n-late')
    const slot = slotOf(await acquire(leases, request(scope, node, 1)))
    await cluster.kubectl('delete', 'lease', slot.name)
    expect(await renew(leases, slot, node, working)).toMatchObject({ outcome: 'lost' })
    expect((await listScope(leases, scope)).slots).toEqual([])
  })

  test('a PUT without the uid would recreate a deleted slot', async () => {
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'raised', resourceVersion: '7' },
      spec: {},
    }
    expect(await cluster.admin.json('PUT', `${leasesPath}/raised`, { body })).toMatchObject({
      metadata: { name: 'raised' },
    })
    await cluster.admin.json('DELETE', `${leasesPath}/raised`)
  })

  test('a slot keeps what an administrator writes into it, and its renewal continues', async () => {
    const scope = scopeOfTest()
    const node = await createNode('n-person')
    const slot = slotOf(await acquire(leases, request(scope, node, 1)))
    await cluster.kubectl('annotate', 'lease', slot.name, 'note=mine')
    expect(await renew(leases, slot, node, working)).toMatchObject({
      outcome: 'held',
      slot: { lease: { metadata: { annotations: { note: 'mine' } } } },
    })
  })

  test('an agent neither writes nor deletes a slot that another node holds by now', async () => {
    const scope = scopeOfTest()
    const [one, other] = [await createNode('n-one'), await createNode('n-other')]
    const slot = slotOf(await acquire(leases, request(scope, one, 1)))
    await cluster.kubectl('delete', 'lease', slot.name)
    const theirs = slotOf(await acquire(leases, request(scope, other, 1)))
    expect(theirs.name).toBe(slot.name)
    expect(await renew(leases, slot, one, working)).toMatchObject({ outcome: 'lost' })
    expect(await release(leases, slot, one)).toMatchObject({ outcome: 'lost' })
    expect((await listScope(leases, scope)).slots).toMatchObject([{ uid: theirs.uid, holder: 'n-other' }])
  })
})

describe('garbage collection', () => {
  test('garbage collection frees the slot of a deleted node', async () => {
    const scope = scopeOfTest()
    const [gone, next] = [await createNode('n-gone'), await createNode('n-next')]
    slotOf(await acquire(leases, request(scope, gone, 1)))
    expect(await acquire(leases, request(scope, next, 1))).toMatchObject({
      outcome: 'waiting',
      listing: { slots: [{ holder: 'n-gone' }] },
    })
    await cluster.kubectl('delete', 'node', 'n-gone')
    await vi.waitFor(async () => expect((await acquire(leases, request(scope, next, 1))).outcome).toBe('held'), {
      timeout: 10_000,
      interval: 50,
    })
  })

  test('garbage collection removes the slot of a re-registered node, which adopts a recovery slot that counts', async () => {
    const scope = scopeOfTest()
    const node = await createNode('n-again')
    slotOf(await acquire(leases, request(scope, node, 1)))
    await cluster.kubectl('delete', 'node', 'n-again')
    const recreated = await createNode('n-again')
    expect(await createRecoverySlot(leases, request(scope, recreated, 1))).toMatchObject({
      outcome: 'held',
      slot: { kind: 'recovery' },
    })
    await vi.waitFor(async () => expect((await listScope(leases, scope)).slots).toMatchObject([{ kind: 'recovery' }]), {
      timeout: 10_000,
      interval: 50,
    })
    expect(await acquire(leases, request(scope, await createNode('n-waits'), 1))).toMatchObject({ outcome: 'waiting' })
  })

  test('garbage collection keeps the slots of existing nodes', async () => {
    const scope = scopeOfTest()
    const node = await createNode('n-alive')
    const slot = slotOf(await acquire(leases, request(scope, node, 1)))
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect((await listScope(leases, scope)).slots).toMatchObject([{ uid: slot.uid }])
  })
})

test('one LIST finds the ledger, and the slots that count in a compartment', async () => {
  const skyhook = { name: `s-${randomUUID().slice(0, 8)}`, uid: randomUUID() }
  const node = await createNode('n-ledger')
  const compartments = ['__default__', 'gpu nodes']
  const scopeIn = (compartment: string): Scope => skyhookScope(skyhook, compartment, compartments)
  // of one that the policy had before: it counts in all
  for (const compartment of [...compartments, 'earlier']) await acquire(leases, request(scopeIn(compartment), node, 1))
  await cluster.admin.json('POST', leasesPath, {
    body: {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: ledgerName(skyhook), labels: ledgerLabels(skyhook) },
      spec: {},
    },
  })
  for (const compartment of compartments) {
    const { slots, ledgers } = await listScope(leases, scopeIn(compartment))
    const expected = [compartment, 'earlier'].map((one) => indexedName(scopeIn(one), 0))
    expect(slots.map(({ name }) => name).toSorted()).toEqual(expected.toSorted())
    expect(ledgers).toHaveLength(1)
  }
})

test('twenty nodes that race for three slots never hold more than three, and each gets one in the end', async () => {
  const scope = scopeOfTest()
  const nodes = await Promise.all(Array.from({ length: 20 }, async (_, number) => await createNode(`race-${number}`)))
  let holders = 0
  let most = 0
  let asked = 0
  const turn = async (node: NodeIdentity): Promise<void> => {
    for (;;) {
      asked++
      const got = await acquire(leases, request(scope, node, 3))
      if (got.outcome === 'held') {
        most = Math.max(most, ++holders)
        expect((await listScope(leases, scope)).slots.length).toBeLessThanOrEqual(3)
        await renew(leases, got.slot, node, working)
        holders--
        expect(await release(leases, got.slot, node)).toEqual({ outcome: 'released' })
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 40))
    }
  }
  await Promise.all(nodes.map(turn))
  expect(most).toBeLessThanOrEqual(3)
  console.log(`20 nodes, 3 slots: ${asked} times asked, at most ${most} holders`)
})
