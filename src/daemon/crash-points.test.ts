import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createHostRoot } from '../host/root.ts'
import type { Transport } from '../kube/transport.ts'
import { crashOrderOf, createCrashPoints, watchedRoot, watchedTransport } from './crash-points.ts'

const folder = mkdtempSync(join(tmpdir(), 'skyhookd-crash-'))
afterEach(() => rmSync(join(folder, 'marker'), { force: true }))
afterAll(() => rmSync(folder, { recursive: true }))

describe('crash points', () => {
  test('are off without an order', () => {
    expect(crashOrderOf({}, '/host', '/var/lib/skyhook')).toBeUndefined()
  })

  test('kill at the n-th passage, once', () => {
    let kills = 0
    const order = { at: 'file:journal#2', marker: join(folder, 'marker'), kill: () => void kills++ }
    const points = createCrashPoints(order)
    points.pass('file:journal')
    expect(kills).toBe(0)
    points.pass('file:history')
    points.pass('file:journal')
    expect(kills).toBe(1)
    const afterRestart = createCrashPoints(order)
    afterRestart.pass('file:journal')
    afterRestart.pass('file:journal')
    expect(kills).toBe(1)
  })

  test('record every passage with its number', () => {
    const recordTo = join(folder, 'record')
    const points = createCrashPoints({ recordTo, marker: join(folder, 'marker') })
    for (const name of ['unit:start', 'unit:start', 'api:POST leases']) points.pass(name)
    expect(readFileSync(recordTo, 'utf8')).toBe('unit:start#1\nunit:start#2\napi:POST leases#1\n')
  })

  test('are named by what was written', async () => {
    const passed: string[] = []
    const points = { pass: (name: string) => void passed.push(name) }
    const root = watchedRoot(createHostRoot(folder), points)
    await root.mkdirp('/var/lib/skyhook/.agent')
    await root.mkdirp('/var/lib/skyhook/s/flags')
    await root.writeFileDurable('/var/lib/skyhook/.agent/journal.json', '{}', 0o600)
    await root.writeFileDurable('/var/lib/skyhook/s/flags/START', '', 0o644)
    const silent: Transport = { json: async () => ({}) as never, stream: () => Promise.reject(new Error('none')), close: () => undefined }
    const transport = watchedTransport(silent, points)
    await transport.json('PATCH', '/api/v1/nodes/n/status')
    await transport.json('POST', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases')
    await transport.json('DELETE', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases/x')
    await transport.json('POST', '/api/v1/namespaces/shop/pods/cart/eviction')
    await transport.json('POST', '/api/v1/namespaces/default/events')
    await transport.json('GET', '/api/v1/nodes')
    expect(passed).toEqual([
      'file:journal',
      'file:flags',
      'api:PATCH nodes/status',
      'api:POST leases',
      'api:DELETE leases',
      'api:POST pods/eviction',
    ])
  })
})
