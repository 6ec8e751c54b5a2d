/** One slot per holder and scope, on a real API server with the chart's policies and on the simulated one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { bootstrapScope, controlPlaneScope, skyhookScope, type Scope } from '../../src/lease/names.ts'
import { listScope, type Leases } from '../../src/lease/slot-reads.ts'
import { newLease, type NodeIdentity, type SlotTarget } from '../../src/lease/slot.ts'
import { acquire, type SlotRequest } from '../../src/lease/slot-acquisition.ts'
import { createRecoverySlot } from '../../src/lease/slot-creation.ts'
import { release } from '../../src/lease/slots.ts'
import { oneSlotPerHolder } from '../kit/api-server/one-slot-rule.ts'
import { leasesPath as simulatedLeases, sampleServer } from '../kit/api-server/sample-server.ts'
import { useAgents } from './agents.ts'
import { namespace } from './chart-cluster.ts'

const agents = useAgents()
const demo = { name: 'demo', uid: '886eeb6f-b77f-45fe-b73e-b3dbbbd1780b' }
const progress = { phase: 'working', generation: 1, packages: [] } as const
const recovery = { kind: 'recovery' } as const
const unlimited = { kind: 'unlimited' } as const
const scope = skyhookScope(demo)
const identity = (name: 'node-a' | 'node-b'): NodeIdentity => ({ name, uid: agents.uids[name], bootId: 'boot' })
const request = (ofScope: Scope, node: NodeIdentity, limit: number): SlotRequest => ({
  scope: ofScope,
  node,
  progress,
  admissionFrom: () => ({ limit }),
})

/** What node-a asks for, and the answer; `delete` ends the slot of the step before. */
const script: readonly (readonly [what: string, Scope, SlotTarget | 'delete', status: number])[] = [
  ['a first slot', scope, { index: 0 }, 201],
  ['a second slot', scope, { index: 1 }, 422],
  ['a recovery slot beside it', scope, recovery, 422],
  ['a slot without limit beside it', scope, unlimited, 422],
  ['a slot in another compartment', skyhookScope(demo, 'gpu'), { index: 0 }, 201],
  ['a bootstrap slot', bootstrapScope(demo), { index: 0 }, 201],
  ['a second bootstrap slot', bootstrapScope(demo), { index: 1 }, 422],
  ['the slot of the control plane', controlPlaneScope, { index: 0 }, 201],
  ['a recovery slot of the control plane beside it', controlPlaneScope, recovery, 422],
  ['the end of the first slot', scope, 'delete', 200],
  ['a recovery slot', scope, recovery, 201],
  ['a slot beside the recovery slot', scope, { index: 0 }, 422],
  ['a slot without limit of its own name', scope, unlimited, 409],
  ['the end of the recovery slot', scope, 'delete', 200],
  ['a slot without limit', scope, unlimited, 201],
  ['a slot beside one without limit', scope, { index: 0 }, 201],
]

/** The answers to the script. */
async function answers(
  transport: KubeTransport,
  path: string,
  node: NodeIdentity,
  settle: () => Promise<unknown>,
): Promise<unknown[]> {
  const last = new Map<string, string>()
  const statuses: unknown[] = []
  for (const [what, ofScope, target] of script) {
    const body = target === 'delete' ? undefined : newLease(ofScope, target, node, progress, 0)
    const sent =
      body === undefined
        ? transport.json('DELETE', `${path}/${last.get(ofScope.hash) ?? ''}`, {})
        : transport.json('POST', path, { body })
    const status = await sent.then(
      () => (body === undefined ? 200 : 201),
      (error: unknown) => (error as { status?: number }).status ?? error,
    )
    if (body !== undefined && status === 201) last.set(ofScope.hash, body.metadata.name)
    statuses.push([what, status])
    await settle()
  }
  return statuses
}
/** Policies read a cache of the Leases. */
const settle = async (): Promise<unknown> => await sleep(250)

describe('one slot per holder', () => {
  const expected = script.map(([what, , , status]) => [what, status])

  test('the policy refuses a holder what it may not have beside its slot, and nothing else', async () => {
    const transport = await agents.transportOf('node-a')
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
    expect(await answers(transport, path, identity('node-a'), settle)).toEqual(expected)
    transport.close()
  })

  test('the simulated API server answers the same', async () => {
    const { server, admin } = sampleServer()
    server.admission.push(oneSlotPerHolder(server))
    expect(
      await answers(admin, simulatedLeases, { name: 'node-a', uid: 'uid', bootId: 'boot' }, async () => undefined),
    ).toEqual(expected)
  })
})

describe('an agent under the policy', () => {
  const at = (name: string): Scope => skyhookScope({ name, uid: name })
  async function withLeases(work: (leases: Leases, node: NodeIdentity) => Promise<void>): Promise<void> {
    const transport = await agents.transportOf('node-b')
    await work({ transport, namespace, clock: systemClock }, identity('node-b'))
    transport.close()
  }

  test('a recovery slot that is refused beside an own slot is that slot', async () => {
    await withLeases(async (leases, node) => {
      const first = await acquire(leases, request(at('late'), node, 3))
      await settle()
      expect(await createRecoverySlot(leases, request(at('late'), node, 3))).toMatchObject({
        outcome: 'held',
        slot: { kind: 'slot', uid: first.outcome === 'held' ? first.slot.uid : 'none' },
      })
    })
  })

  test('an agent that gives a slot back gets the next one at once', async () => {
    await withLeases(async (leases, node) => {
      for (let round = 0; round < 100; round++) {
        const acquired = await acquire(leases, request(at(`round-${round % 2}`), node, 50))
        if (acquired.outcome !== 'held') expect.unreachable(JSON.stringify(acquired))
        expect(await release(leases, acquired.slot, node)).toEqual({ outcome: 'released' })
      }
    })
  })

  test('an agent keeps one of the slots that it took in the same moment', async () => {
    await withLeases(async (leases, node) => {
      const targets = Array.from({ length: 20 }, (_, index) => newLease(at('burst'), { index }, node, progress, 0))
      const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
      await Promise.allSettled(targets.map(async (body) => await leases.transport.json('POST', path, { body })))
      expect(await acquire(leases, request(at('burst'), node, 50))).toMatchObject({ outcome: 'held', isNew: false })
      expect((await listScope(leases, at('burst'))).slots).toHaveLength(1)
    })
  })
})
