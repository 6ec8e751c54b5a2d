import { expect, test } from 'vitest'
import { createNode, sampleServer } from '../api-server/sample-server.ts'
import { isReadyPod } from '../api-server/eviction.ts'
import { createChance } from './chance.ts'
import { startWorkload } from './workload.ts'

const pod = { name: 'web', isProtected: false, isGuarded: false, graceMs: 1_000 }

async function startSample() {
  const sample = sampleServer()
  const { admin, clock, server } = sample
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'apps' } } })
  await createNode(admin, 'n1')
  await admin.json('PATCH', '/api/v1/nodes/n1/status', {
    contentType: 'application/merge-patch+json',
    body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
  })
  const workload = startWorkload(server, { clock, chance: createChance(1, 0), hasGuard: false })
  return { ...sample, workload, areReady: () => server.objects('pods').map(isReadyPod) }
}

test('a pod that is placed while the API server is away becomes Ready', async () => {
  const { clock, server, workload, areReady } = await startSample()
  server.stop()
  workload.place(pod, 'n1')
  await clock.advance(20_000)
  server.start()
  await clock.advance(5_000)
  expect(areReady()).toEqual([true])
})

test('a pod of a restored etcd that was not Ready yet becomes Ready', async () => {
  const { clock, server, workload, areReady } = await startSample()
  workload.place(pod, 'n1')
  const copy = server.backUp()
  await clock.advance(5_000)
  expect(areReady()).toEqual([true])
  server.restore(copy)
  await clock.advance(5_000)
  expect(areReady()).toEqual([true])
})
