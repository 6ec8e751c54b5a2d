import { expect, test } from 'vitest'
import { evict, type EvictionOutcome } from '../../../src/kube/evict.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import { startDisruptionController } from './disruption-controller.ts'
import { startGarbageCollector } from './garbage-collector.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import {
  budgetsPath,
  createLease,
  createNode,
  createPod,
  leasesPath,
  namesOf,
  nodesPath,
  podsPath,
  type Sample,
  sampleServer,
} from './sample-server.ts'

function withCollector(): Sample {
  const sample = sampleServer()
  const { server, clock } = sample
  startGarbageCollector(server, { clock, random: createSeededRandom(1), delayMs: () => 1_000 })
  return sample
}

test('the garbage collector deletes, some time later, what a deleted owner leaves behind, and nothing else', async () => {
  const { clock, server, admin } = withCollector()
  const [n1, n2] = [await createNode(admin, 'n1'), await createNode(admin, 'n2')]
  await createLease(admin, 'of-n1', n1)
  await createLease(admin, 'of-n2', n2)
  await createLease(admin, 'free')
  await admin.json('DELETE', `${nodesPath}/n1`)
  await clock.advance(999)
  expect(namesOf(server, 'leases')).toEqual(['free', 'of-n1', 'of-n2'])
  await clock.advance(1)
  expect(namesOf(server, 'leases')).toEqual(['free', 'of-n2'])
})

test('the garbage collector goes by the uid of the owner, not by its name', async () => {
  const { clock, server, admin } = withCollector()
  const former = await createNode(admin, 'n1')
  await admin.json('DELETE', `${nodesPath}/n1`)
  const current = await createNode(admin, 'n1')
  await createLease(admin, 'of-former', former)
  await createLease(admin, 'of-current', current)
  await clock.advance(5_000)
  expect(namesOf(server, 'leases')).toEqual(['of-current'])
})

test('the garbage collector does not delete what was created again under the name of garbage', async () => {
  const { clock, server, admin } = withCollector()
  const [n1, n2] = [await createNode(admin, 'n1'), await createNode(admin, 'n2')]
  await createLease(admin, 'slot', n1)
  await admin.json('DELETE', `${nodesPath}/n1`)
  await admin.json('DELETE', `${leasesPath}/slot`)
  const again = await createLease(admin, 'slot', n2)
  await clock.advance(5_000)
  expect(server.objects('leases')).toEqual([again])
})

test('the garbage collector works again after an absence of the server and after a restore', async () => {
  const { clock, server, admin } = withCollector()
  const n1 = await createNode(admin, 'n1')
  await createLease(admin, 'slot', n1)
  await admin.json('DELETE', `${nodesPath}/n1`)
  const backup = server.backUp()
  server.stop()
  await clock.advance(5_000)
  expect(namesOf(server, 'leases')).toEqual(['slot'])
  server.start()
  await clock.advance(2_000)
  expect(namesOf(server, 'leases')).toEqual([])
  server.restore(backup)
  await clock.advance(2_000)
  expect(namesOf(server, 'leases')).toEqual([])
})

test('a disruption budget lets as many pods go as it allows, and more when others are ready', async () => {
  const { clock, server, admin } = sampleServer()
  startDisruptionController(server, { clock })
  for (const name of ['p1', 'p2', 'p3']) await createPod(admin, name)
  const selector = { matchLabels: { app: 'cart' } }
  const body = { metadata: { name: 'cart' }, spec: { minAvailable: 2, selector } }
  await admin.json('POST', budgetsPath, { body })
  const evictNamed = async (name: string): Promise<EvictionOutcome> => {
    const { metadata } = await admin.json<KubeObject>('GET', `${podsPath}/${name}`)
    return await evict(admin, { namespace: 'default', name, uid: metadata.uid })
  }
  expect(await evictNamed('p1')).toMatchObject({ outcome: 'blocked', retryAfterMs: 10_000 })
  await clock.advance(200)
  expect(await evictNamed('p1')).toEqual({ outcome: 'requested' })
  await clock.advance(200)
  const message = 'PDB default/cart: needs 2 healthy pods and has 2'
  expect(await evictNamed('p2')).toMatchObject({ outcome: 'blocked', message })
  await createPod(admin, 'p4')
  await clock.advance(200)
  expect(await evictNamed('p2')).toEqual({ outcome: 'requested' })
})

test('a pod that has taken the name of the one that was to go is not evicted', async () => {
  const { server, admin } = sampleServer()
  await createPod(admin, 'p1')
  const { metadata } = await admin.json<KubeObject>('GET', `${podsPath}/p1`)
  const late: KubeTransport = {
    ...admin,
    async json<T>(...[method, path, options]: Parameters<KubeTransport['json']>) {
      const answer = await admin.json<T>(method, path, options)
      if (method === 'GET') {
        await admin.json('DELETE', `${podsPath}/p1`, { body: { gracePeriodSeconds: 0 } })
        await createPod(admin, 'p1')
      }
      return answer
    },
  }
  const outcome = await evict(late, { namespace: 'default', name: 'p1', uid: metadata.uid })
  const [pod] = server.objects('pods')
  expect([outcome, pod?.metadata.deletionTimestamp, pod?.['status']]).toEqual([
    { outcome: 'gone' },
    undefined,
    expect.not.objectContaining({ conditions: expect.arrayContaining([{ type: 'DisruptionTarget' }]) }),
  ])
})

test('a disruption budget forgets an eviction that did not end its pod', async () => {
  const { clock, server, admin } = sampleServer()
  startDisruptionController(server, { clock })
  await createPod(admin, 'p1')
  const body = { metadata: { name: 'cart' }, spec: { maxUnavailable: 1, selector: {} } }
  await admin.json('POST', budgetsPath, { body })
  await clock.advance(200)
  const status = {
    ...(server.objects('poddisruptionbudgets')[0]?.['status'] as object),
    disruptionsAllowed: 0,
    disruptedPods: { p1: new Date(clock.wallMs()).toISOString() },
  }
  await admin.json('PATCH', `${budgetsPath}/cart/status`, {
    body: { status },
    contentType: 'application/merge-patch+json',
  })
  await clock.advance(60_000)
  expect(server.objects('poddisruptionbudgets')[0]).toMatchObject({ status: { disruptionsAllowed: 0 } })
  await clock.advance(70_000)
  expect(server.objects('poddisruptionbudgets')[0]).toMatchObject({ status: { disruptionsAllowed: 1 } })
})
