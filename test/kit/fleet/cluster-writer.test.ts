import { expect, test } from 'vitest'
import { createNode, nodesPath, sampleServer } from '../api-server/sample-server.ts'
import { createClusterWriter } from './cluster-writer.ts'
import { startAgentPod } from './agent-pod.ts'
import { isReadyPod } from '../api-server/eviction.ts'

async function startSample() {
  const sample = sampleServer()
  await createNode(sample.admin, 'n1')
  return sample
}

test('requests are carried out in the order in which they were sent, once the API server is back', async () => {
  const { clock, server } = await startSample()
  const writer = createClusterWriter(server, { clock, client: 'admin' })
  const label = (pool: string): void => writer.patch(`${nodesPath}/n1`, { metadata: { labels: { pool } } })
  server.stop()
  label('first')
  await clock.advance(100)
  label('second')
  await clock.advance(450)
  server.start()
  await clock.advance(5_000)
  expect(server.object('nodes', undefined, 'n1')?.metadata.labels).toEqual({ pool: 'second' })
})

test('each request is carried out once, also one that is sent while another one is', async () => {
  const { clock, server } = await startSample()
  const writer = createClusterWriter(server, { clock, client: 'admin' })
  const created: string[] = []
  const create = (name: string): void => writer.send('POST', nodesPath, { metadata: { name } })
  server.observe({
    committed({ version: { object } }) {
      created.push(object.metadata.name)
      if (object.metadata.name === 'n2') create('n3')
    },
  })
  create('n2')
  create('n4')
  expect(created).toEqual(['n2', 'n3', 'n4'])
})

test('an agent that starts again while the API server is away has a pod that is Ready afterwards', async () => {
  const { admin, clock, server } = await startSample()
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  const pod = startAgentPod(server, { clock, host: 'host1', nodeName: () => 'n1', isCut: () => false })
  pod.create()
  pod.setReady(true)
  await clock.advance(2_000)
  server.stop()
  pod.setReady(false)
  await clock.advance(100)
  pod.setReady(true)
  await clock.advance(1_450)
  server.start()
  await clock.advance(5_000)
  expect(server.objects('pods').map(isReadyPod)).toEqual([true])
})
