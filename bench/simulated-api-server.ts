/**
 * How many requests the simulated API server of the fleet handles per second of CPU, clients included:
 * `node bench/simulated-api-server.ts [nodes]`.
 */
import { startReflector } from '../src/kube/reflector.ts'
import type { KubeObject } from '../src/kube/objects.ts'
import type { KubeTransport } from '../src/kube/transport.ts'
import { createClient } from '../test/kit/api-server/client.ts'
import { createSimulatedApiServer } from '../test/kit/api-server/server.ts'
import { createSeededRandom, createVirtualClock } from '../test/kit/virtual-clock.ts'

const nodes = Number(process.argv[2] ?? 1_000)
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const strategic = 'application/strategic-merge-patch+json'

const clock = createVirtualClock(undefined, { settleTurns: 1 })
const random = createSeededRandom(1)
const server = createSimulatedApiServer({ clock, random })
const clients: KubeTransport[] = []
let events = 0

async function measure(what: string, act: () => Promise<void>): Promise<void> {
  const requestsBefore = server.audit.length
  const eventsBefore = events
  const cpu = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(cpu)
  const seconds = (user + system) / 1e6
  const requests = server.audit.length - requestsBefore
  const parts = [`${requests} requests`, `${events - eventsBefore} events`, `${seconds.toFixed(2)} s of CPU`]
  console.log(`${what}: ${parts.join(', ')}, ${Math.round(requests / seconds)} requests per second of CPU`)
}

const eachClient = async (act: (client: KubeTransport, number: number) => Promise<unknown>): Promise<void> => {
  for (const [number, client] of clients.entries()) await act(client, number)
}

await measure(`${nodes} Nodes and Leases created`, async () => {
  for (let number = 0; number < nodes; number++) {
    const client = createClient(server, { name: `agent-${number}`, clock, random })
    clients.push(client)
    await client.json('POST', '/api/v1/nodes', { body: { metadata: { name: `n${number}` } } })
    await client.json('POST', leasesPath, { body: { metadata: { name: `l${number}` }, spec: {} } })
  }
})

const rounds = Math.ceil(50_000 / nodes)
const requestsOf = async (): Promise<void> => {
  for (let round = 0; round < rounds; round++) {
    await eachClient(async (client, number) => {
      const lease = await client.json<KubeObject>('GET', `${leasesPath}/l${number}`)
      await client.json('PUT', `${leasesPath}/l${number}`, { body: { ...lease, spec: { holderIdentity: `${round}` } } })
      const body = { metadata: { annotations: { 'skyhook.nvidia.com/state': `${round}` } } }
      await client.json('PATCH', `/api/v1/nodes/n${number}`, { body, contentType: strategic })
    })
  }
}
await measure('a read, a replacement and a patch per node and round, without watches', requestsOf)

await measure(`${nodes} reflectors of one Node each`, async () => {
  await eachClient(async (client, number) => {
    startReflector<KubeObject>(client, {
      clock,
      random,
      path: '/api/v1/nodes',
      query: { fieldSelector: `metadata.name=n${number}` },
      onChange: ({ changes }) => {
        events += changes.length
      },
      signal: new AbortController().signal,
    })
    await Promise.resolve()
  })
  await clock.advance(0)
})
await measure('the same requests with these watches', async () => {
  await requestsOf()
  await clock.advance(0)
})
await measure(`${nodes} consistent lists of 100 Leases by label`, async () => {
  const labels = { scope: 'a' }
  for (let number = 0; number < 100; number++)
    await clients[0]?.json('POST', leasesPath, { body: { metadata: { name: `s${number}`, labels }, spec: {} } })
  await eachClient(async (client) => await client.json('GET', leasesPath, { query: { labelSelector: 'scope=a' } }))
})
