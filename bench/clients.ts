/**
 * The official Kubernetes client beside ours, on the same 200 requests one after another against a TLS server on
 * loopback: connections, time, memory. docs/design/decisions/own-api-client.md quotes it. Usage: node bench/clients.ts
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../src/daemon/platform/system-clock.ts'
import { staticCredentials } from '../test/kit/tool/static-credentials.ts'
import { createKubeTransport } from '../src/kube/transport.ts'
import { type Memory, memoryOf } from './memory.ts'

const requests = 200
const fixtures = join(import.meta.dirname, '../test/fixtures/tls')
const ca = readFileSync(join(fixtures, 'ca.crt'), 'utf8')
const node = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec: {}, status: {} })

/** Reads the same node repeatedly, in a process of its own. */
async function runClient(client: string, server: string): Promise<void> {
  const read = client === 'official' ? await officialClient(server) : ownClient(server)
  const started = performance.now()
  for (let count = 0; count < requests; count++) await read()
  console.log(JSON.stringify({ ms: performance.now() - started, ...memoryOf('self') }))
  process.exit(0)
}

async function officialClient(server: string): Promise<() => Promise<unknown>> {
  const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'bench', server, caData: Buffer.from(ca).toString('base64'), skipTLSVerify: false },
    { name: 'bench', token: 'bench' },
  )
  const api = config.makeApiClient(CoreV1Api)
  return () => api.readNode({ name: 'node-1' })
}

function ownClient(server: string): () => Promise<unknown> {
  const transport = createKubeTransport({
    credentials: staticCredentials({ server, ca, token: 'bench' }),
    version: 'bench',
    clock: systemClock,
    rate: false,
  })
  return () => transport.json('GET', '/api/v1/nodes/node-1')
}

async function compare(client: 'official' | 'ours'): Promise<void> {
  let connections = 0
  const tls = {
    cert: readFileSync(join(fixtures, 'localhost.crt')),
    key: readFileSync(join(fixtures, 'localhost.key')),
  }
  const server = createServer(tls, (_, answer) => answer.setHeader('content-type', 'application/json').end(node))
  server.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const child = spawn(process.execPath, [import.meta.filename, client, url], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  await new Promise((resolve) => child.on('close', resolve))
  server.closeAllConnections()
  server.close()
  const { ms, rssMiB, privateMiB } = JSON.parse(output) as Memory & { ms: number }
  console.log(
    `${client.padEnd(9)} ${requests} requests: ${connections} TLS connections, ${ms.toFixed(0)} ms, ` +
      `${rssMiB.toFixed(1)} MiB RSS, ${privateMiB.toFixed(1)} MiB private`,
  )
}

const [client, server] = process.argv.slice(2)
if (client !== undefined && server !== undefined) await runClient(client, server)
else {
  await compare('official')
  await compare('ours')
}
