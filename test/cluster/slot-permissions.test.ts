/** Which Leases an agent's token may write, on a real API server with the chart's roles and policies. */
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { bootstrapScope, controlPlaneScope, nodeLabels, skyhookScope, type Scope } from '../../src/lease/names.ts'
import { readLease, writeLease } from '../../src/lease/election-lease.ts'
import { writeLedger } from '../../src/lease/ledger.ts'
import { microTime } from '../../src/lease/slot.ts'
import { listScope } from '../../src/lease/slot-reads.ts'
import { acquire, type SlotRequest } from '../../src/lease/slot-acquisition.ts'
import { createRecoverySlot, type AcquireOutcome } from '../../src/lease/slot-creation.ts'
import { release, renew } from '../../src/lease/slots.ts'
import { allowed, leases, refused, useAgents, type NodeName } from './agents.ts'
import { namespace, type Json } from './chart-cluster.ts'
import { post, put, send, tryRows, type Wanted } from './request-rows.ts'

const agents = useAgents()

describe('a slot', () => {
  const scope = '0a1b2c3d'
  type Change = { owner?: NodeName; owners?: unknown[]; labels?: Json; finalizers?: string[] }
  const lease = (name: string, kind: string, holder: NodeName, change: Change = {}): Json => {
    const { owner = holder, labels, finalizers } = change
    const owners = change.owners ?? [{ apiVersion: 'v1', kind: 'Node', name: owner, uid: agents.uids[owner] }]
    return {
      metadata: {
        name,
        labels: {
          'skyhook.nvidia.com/name': 'demo',
          'skyhook.nvidia.com/compartment': '',
          'skyhook.nvidia.com/scope': /-([0-9a-f]{8})\./.exec(name)?.[1] ?? scope,
          'skyhook.nvidia.com/slot-kind': kind,
          ...nodeLabels(holder),
          ...labels,
        },
        ownerReferences: owners,
        ...(finalizers && { finalizers }),
      },
      spec: { holderIdentity: holder, leaseDurationSeconds: 120 },
    }
  }
  const slot = (index: number, ofScope = scope) => `demo-${ofScope}.slot-${index}`
  const labelsOf = (object: Json): Json => (object['metadata'] as { labels: Json }).labels
  /** The stored slot with other labels or another duration. */
  const changed = (name: string, labels: Json, spec: Json = {}): Wanted =>
    put(agents, `${leases}/${name}`, (object) => {
      Object.assign(labelsOf(object), labels)
      Object.assign(object['spec'] as Json, spec)
    })

  const ofControlPlane = { labels: { 'skyhook.nvidia.com/name': '', 'skyhook.nvidia.com/scope': 'control-plane' } }
  const ofCompartment = { labels: { 'skyhook.nvidia.com/compartment': 'GPU_nodes' } }
  // for a moment the policy still sees the slot of the scope that was just released
  test.each<[string, string, string, Change?]>([
    ['a slot', slot(0), 'slot'],
    ['a slot of a compartment', 'demo.gpu-nodes-0a1b2c3e.slot-12', 'slot', ofCompartment],
    ['a slot without limit', 'demo-0a1b2c3f.node-node-a', 'unlimited'],
    ['a recovery slot', 'demo-0a1b2c40.node-node-a', 'recovery'],
    ['a bootstrap slot', 'demo-0a1b2c41.bootstrap-3', 'bootstrap'],
    ['the slot of the control plane', 'control-plane.slot-0', 'control-plane', ofControlPlane],
    ['a recovery slot of the control plane', 'control-plane.node-node-a', 'recovery', ofControlPlane],
  ])('a node creates, renews and releases %s', async (_, name, kind, change) => {
    await expect.poll(() => agents.a('POST', leases, lease(name, kind, 'node-a', change))).toEqual(allowed)
    expect(await send(agents.a, changed(name, {}, { leaseDurationSeconds: 1800 }))).toEqual(allowed)
    expect(await agents.a('DELETE', `${leases}/${name}`)).toEqual(allowed)
  })

  const ownSlot = (change: Change) => () => lease(slot(1), 'slot', 'node-a', change)
  const created: [string, () => Json, RegExp][] = [
    [
      'another holder',
      () => lease(slot(1), 'slot', 'node-b', { owner: 'node-a' }),
      /may not write slot demo-.* for node node-b/,
    ],
    ['another owner', ownSlot({ owner: 'node-b' }), /exactly one owner, Node node-a, and not Node node-b/],
    ['no owner', ownSlot({ owners: [] }), /exactly one owner, Node node-a, and not none/],
    ['a free name', () => lease('anything', 'slot', 'node-a'), /Lease anything of node node-a is not a slot/],
    ['a kind that its name does not have', () => lease(slot(1), 'recovery', 'node-a'), /slot-kind=recovery/],
    [
      'the name of a ledger',
      () => lease(`demo-${scope}.ledger`, 'ledger', 'node-a'),
      /is not a ledger: .*name=demo, scope=0a1b2c3d/,
    ],
    [
      'the name of the election',
      () => lease('skyhookd-census', 'slot', 'node-a'),
      /skyhookd-census only for itself or for nobody/,
    ],
    ['a finalizer', ownSlot({ finalizers: ['example.com/x'] }), /may not change finalizers of Lease/],
    [
      'the shard of other nodes',
      ownSlot({ labels: { 'skyhook.nvidia.com/node-shard': '3' } }),
      /must have the label skyhook.nvidia.com\/node-shard=6/,
    ],
    [
      'no label of its node',
      ownSlot({ labels: { 'skyhook.nvidia.com/node': undefined } }),
      /must have the label skyhook.nvidia.com\/node=node-a and not none/,
    ],
  ]
  tryRows(
    'a node that creates a slot with %s is told what is wrong',
    () => agents.a,
    created.map(([what, body, refusal]) => [what, post(leases, body), refusal]),
  )

  test('a node that makes its slot one of another scope is told so', async () => {
    const name = slot(3, '33333333')
    await agents.a('POST', leases, lease(name, 'slot', 'node-a'))
    expect(await send(agents.a, changed(name, { 'skyhook.nvidia.com/compartment': 'gpu' }))).toEqual(
      refused(/may not make slot demo-33333333.slot-3 one of another Skyhook, compartment, scope or kind/),
    )
  })

  test('a node puts back the labels that a person has taken off its slot', async () => {
    const name = slot(5, '55555555')
    const whole = lease(name, 'slot', 'node-a')
    await agents.a('POST', leases, whole)
    const none = ['name', 'compartment', 'slot-kind'].map((key) => [`skyhook.nvidia.com/${key}`, undefined])
    expect(await send(agents.cluster.admin, changed(name, Object.fromEntries(none) as Json))).toEqual(allowed)
    expect(await send(agents.a, changed(name, labelsOf(whole)))).toEqual(allowed)
  })

  test('a node renews a slot from before the label of its node, and cannot put another label there', async () => {
    const name = slot(4, '44444444')
    const labels = { 'skyhook.nvidia.com/node': undefined, 'skyhook.nvidia.com/node-shard': undefined }
    const unlabeled = lease(name, 'slot', 'node-a', { labels })
    expect(await agents.cluster.admin('POST', leases, unlabeled)).toEqual(allowed)
    expect(await send(agents.a, changed(name, {}, { leaseDurationSeconds: 60 }))).toEqual(allowed)
    expect(await send(agents.a, changed(name, { 'skyhook.nvidia.com/node': 'node-b' }))).toEqual(
      refused('must have the label skyhook.nvidia.com/node=node-a and not node-b'),
    )
    expect(await send(agents.a, changed(name, { 'skyhook.nvidia.com/node': 'node-a' }))).toEqual(allowed)
  })

  test("agents do not list the Leases in the nodes' own namespace", async () => {
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
    expect(await agents.a('GET', path)).toEqual(refused(/cannot/))
  })
})

describe("the agents' own requests", () => {
  const skyhook = { name: 'another', uid: '886eeb6f-b77f-45fe-b73e-b3dbbbd1780b' }

  async function takeAndReturn(scope: Scope, take: 'acquire' | 'adopt'): Promise<void> {
    const transport = await agents.transportOf('node-a')
    const port = { transport, namespace, clock: systemClock }
    const node = { name: 'node-a', uid: agents.uids['node-a'], bootId: 'boot' }
    const progress = { phase: 'working', generation: 1, packages: ['tuning:1.0.0'] } as const
    const request: SlotRequest = { scope, node, progress, admissionFrom: () => ({ limit: 1 }) }
    try {
      const acquired: AcquireOutcome =
        take === 'acquire' ? await acquire(port, request) : await createRecoverySlot(port, request)
      if (acquired.outcome !== 'held') expect.unreachable(JSON.stringify(acquired))
      expect(await renew(port, acquired.slot, node, { ...progress, phase: 'rebooting' })).toMatchObject({
        outcome: 'held',
      })
      expect(await release(port, acquired.slot, node)).toEqual({ outcome: 'released' })
    } finally {
      transport.close()
    }
  }

  test('the policies allow what each elected agent writes: the election and the ledger', async () => {
    const ledger = { skyhookUID: skyhook.uid, generation: 1, applied: '', selectorHash: '', waiters: 0, countedAt: '' }
    for (const name of ['node-a', 'node-b'] as const) {
      const transport = await agents.transportOf(name)
      const port = { transport, namespace, clock: systemClock }
      const found = (await listScope(port, skyhookScope(skyhook))).ledgers[0]
      const counted = { v: 1, ...ledger, compartments: { '': { matched: 2, completed: 0 } } } as const
      expect(await writeLedger(port, { skyhook, found }, counted)).toMatchObject({ outcome: 'written' })
      const limits = { signal: new AbortController().signal }
      const change = { isNewTerm: true, renewTime: microTime(0), leaseDurationMs: 1_000 }
      for (const holder of [name, '']) {
        const lease = await readLease(port, 'store', limits)
        expect(await writeLease(port, lease, { ...change, holder }, limits)).toBeDefined()
      }
      transport.close()
    }
  })

  test.each<[string, Scope, 'acquire' | 'adopt']>([
    ['a slot', skyhookScope(skyhook), 'acquire'],
    ['a slot of a compartment with blanks in its name', skyhookScope(skyhook, 'GPU nodes, zone A'), 'acquire'],
    ['a bootstrap slot', bootstrapScope(skyhook), 'acquire'],
    ['the slot of the control plane', controlPlaneScope, 'acquire'],
    ['a recovery slot', skyhookScope(skyhook), 'adopt'],
    ['a recovery slot of the control plane', controlPlaneScope, 'adopt'],
  ])("the policies allow the agents' own requests for %s", async (_, scope, how) => {
    await expect(takeAndReturn(scope, how)).resolves.toBeUndefined()
  })
})
