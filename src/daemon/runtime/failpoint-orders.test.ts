import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { crashPoint, listenToCrashPoints } from '../../host/fs/failpoint.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import type { Transport } from '../../kube/transport.ts'
import { crashOrdersOf, watchedTransport, type CrashOrders } from './failpoint-orders.ts'

let folder: string
let ends: string[]
const ordersOf = (env: NodeJS.ProcessEnv): CrashOrders => {
  const orders = crashOrdersOf(env, folder, '/var/lib/skyhook', (signal) => void ends.push(signal))
  if (!orders) throw new Error('no orders')
  return orders
}
const passAll = (orders: CrashOrders, ...names: string[]): void => names.forEach((name) => orders.pass(name))

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skyhookd-crash-'))
  ends = []
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('crash points', () => {
  test('are off without an order', () => {
    expect(crashOrdersOf({}, '/host', '/var/lib/skyhook')).toBeUndefined()
  })

  test('kill at the n-th passage, once in the life of the host', () => {
    const env = { SKYHOOKD_FAILPOINT: 'fsync:journal#2' }
    const orders = ordersOf(env)
    passAll(orders, 'fsync:journal', 'fsync:history')
    expect(ends).toEqual([])
    passAll(orders, 'fsync:journal')
    expect(ends).toEqual(['SIGKILL'])
    passAll(ordersOf(env), 'fsync:journal', 'fsync:journal')
    expect(ends).toEqual(['SIGKILL'])
  })

  test('record every passage with its number', () => {
    passAll(ordersOf({ SKYHOOKD_FAILPOINT_RECORD: '/record' }), 'bus:RestartUnit', 'bus:RestartUnit', 'api:POST-leases')
    expect(readFileSync(join(folder, 'record'), 'utf8')).toBe('bus:RestartUnit#1\nbus:RestartUnit#2\napi:POST-leases#1\n')
  })

  test('take orders from a file while the agent runs, and count anew for each', () => {
    const file = join(folder, 'orders')
    const orders = ordersOf({ SKYHOOKD_FAILPOINT: '@/orders' })
    passAll(orders, 'a')
    expect(existsSync(`${file}.passed`)).toBe(false)
    writeFileSync(file, '1 none -\n')
    passAll(orders, 'a', 'b')
    writeFileSync(file, '2 stop a#2\n')
    passAll(orders, 'a', 'a', 'a')
    expect(ends).toEqual(['SIGSTOP'])
    expect(existsSync(file)).toBe(false)
    expect(readFileSync(`${file}.done`, 'utf8')).toBe('2 stop a#2\n')
    writeFileSync(file, '3 kill b#1\n')
    passAll(orders, 'b')
    expect(ends).toEqual(['SIGSTOP', 'SIGKILL'])
    writeFileSync(file, '3 kill b#2\n')
    passAll(ordersOf({ SKYHOOKD_FAILPOINT: '@/orders' }), 'b') // another agent, the same run
    expect(ends).toEqual(['SIGSTOP', 'SIGKILL', 'SIGKILL'])
    expect(readFileSync(`${file}.passed`, 'utf8')).toBe('1 a#1\n1 b#1\n2 a#1\n2 a#2\n2 a#3\n3 b#1\n3 b#2\n')
  })

  test('are named by what was made durable', async () => {
    const passed: string[] = []
    const silence = listenToCrashPoints((name) => void passed.push(name))
    const root = createHostRoot(folder)
    await root.mkdirp('/var/lib/skyhook/.agent')
    await root.mkdirp('/var/lib/skyhook/s/flags')
    await root.mkdirp('/etc/skyhook')
    passed.length = 0
    await root.writeFileDurable('/var/lib/skyhook/.agent/journal.json', '{}', 0o600)
    await root.writeFileDurable('/var/lib/skyhook/s/flags/START', '', 0o644)
    await root.writeFile('/var/lib/skyhook/s/flags/START', '', 0o644) // not durable, so no point
    silence()
    crashPoint('nobody hears this')
    expect(passed).toEqual(['fsync:journal', 'fsync:agent/', 'fsync:flags', 'fsync:flags/'])
  })

  test('are named by verb and resource of what the API server acknowledged', async () => {
    const passed: string[] = []
    const silent: Transport = { json: async () => ({}) as never, stream: () => Promise.reject(new Error('none')), close: () => undefined }
    const transport = watchedTransport(silent, (name) => void passed.push(name))
    await transport.json('PATCH', '/api/v1/nodes/n/status')
    await transport.json('POST', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases')
    await transport.json('DELETE', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases/x')
    await transport.json('POST', '/api/v1/namespaces/shop/pods/cart/eviction')
    await transport.json('POST', '/api/v1/namespaces/default/events')
    await transport.json('GET', '/api/v1/nodes')
    expect(passed).toEqual(['api:PATCH-nodes/status', 'api:POST-leases', 'api:DELETE-leases', 'api:POST-pods/eviction'])
  })
})
