import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { failpoint, onFailpoint } from '../../host/fs/failpoint.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { createFailpoints, failpointTransport, type Failpoints } from './failpoint-orders.ts'

let folder: string
let sentSignals: string[]
const failpointsOf = (env: NodeJS.ProcessEnv): Failpoints => {
  const failpoints = createFailpoints(env, folder, '/var/lib/skyhook', (signal) => void sentSignals.push(signal))
  if (!failpoints) throw new Error('no orders')
  return failpoints
}
const hitAll = (failpoints: Failpoints, ...names: string[]): void => names.forEach((name) => failpoints.hit(name))

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skyhookd-crash-'))
  sentSignals = []
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('crash points', () => {
  test('are off without an order', () => {
    expect(createFailpoints({}, '/host', '/var/lib/skyhook')).toBeUndefined()
  })

  test('kill at the n-th passage, once in the life of the host', () => {
    const env = { SKYHOOKD_FAILPOINT: 'fsync:journal#2' }
    const failpoints = failpointsOf(env)
    hitAll(failpoints, 'fsync:journal', 'fsync:history')
    expect(sentSignals).toEqual([])
    hitAll(failpoints, 'fsync:journal')
    expect(sentSignals).toEqual(['SIGKILL'])
    hitAll(failpointsOf(env), 'fsync:journal', 'fsync:journal')
    expect(sentSignals).toEqual(['SIGKILL'])
  })

  test('record every passage with its number', () => {
    hitAll(
      failpointsOf({ SKYHOOKD_FAILPOINT_RECORD: '/record' }),
      'bus:RestartUnit',
      'bus:RestartUnit',
      'api:POST-leases',
    )
    expect(readFileSync(join(folder, 'record'), 'utf8')).toBe(
      'bus:RestartUnit#1\nbus:RestartUnit#2\napi:POST-leases#1\n',
    )
  })

  test('take orders from a file while the agent runs, and count anew for each', () => {
    const file = join(folder, 'orders')
    const failpoints = failpointsOf({ SKYHOOKD_FAILPOINT: '@/orders' })
    hitAll(failpoints, 'a')
    expect(existsSync(`${file}.passed`)).toBe(false)
    writeFileSync(file, '1 none -\n')
    hitAll(failpoints, 'a', 'b')
    writeFileSync(file, '2 stop a#2\n')
    hitAll(failpoints, 'a', 'a', 'a')
    expect(sentSignals).toEqual(['SIGSTOP'])
    expect(existsSync(file)).toBe(false)
    expect(readFileSync(`${file}.done`, 'utf8')).toBe('2 stop a#2\n')
    writeFileSync(file, '3 kill b#1\n')
    hitAll(failpoints, 'b')
    expect(sentSignals).toEqual(['SIGSTOP', 'SIGKILL'])
    writeFileSync(file, '3 kill b#2\n')
    hitAll(failpointsOf({ SKYHOOKD_FAILPOINT: '@/orders' }), 'b') // another agent, the same run
    expect(sentSignals).toEqual(['SIGSTOP', 'SIGKILL', 'SIGKILL'])
    expect(readFileSync(`${file}.passed`, 'utf8')).toBe('1 a#1\n1 b#1\n2 a#1\n2 a#2\n2 a#3\n3 b#1\n3 b#2\n')
  })

  test('are named by what was made durable', async () => {
    const hits: string[] = []
    const stopListening = onFailpoint((name) => void hits.push(name))
    const root = createHostRoot(folder)
    await root.mkdirp('/var/lib/skyhook/.agent')
    await root.mkdirp('/var/lib/skyhook/s/flags')
    await root.mkdirp('/etc/skyhook')
    hits.length = 0
    await root.writeFileDurable('/var/lib/skyhook/.agent/journal.json', '{}', 0o600)
    await root.writeFileDurable('/var/lib/skyhook/s/flags/START', '', 0o644)
    await root.writeFile('/var/lib/skyhook/s/flags/START', '', 0o644) // not durable, so no point
    stopListening()
    failpoint('nobody hears this')
    expect(hits).toEqual(['fsync:journal', 'fsync:agent/', 'fsync:flags', 'fsync:flags/'])
  })

  test('are named by verb and resource of what the API server acknowledged', async () => {
    const hits: string[] = []
    const fakeTransport: KubeTransport = {
      json: async () => ({}) as never,
      stream: () => Promise.reject(new Error('none')),
      close: () => undefined,
    }
    const transport = failpointTransport(fakeTransport, (name) => void hits.push(name))
    await transport.json('PATCH', '/api/v1/nodes/n/status')
    await transport.json('POST', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases')
    await transport.json('DELETE', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases/x')
    await transport.json('POST', '/api/v1/namespaces/shop/pods/cart/eviction')
    await transport.json('POST', '/api/v1/namespaces/default/events')
    await transport.json('GET', '/api/v1/nodes')
    expect(hits).toEqual(['api:PATCH-nodes/status', 'api:POST-leases', 'api:DELETE-leases', 'api:POST-pods/eviction'])
  })
})
