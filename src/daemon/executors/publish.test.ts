import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer } from '../../../test/support/fake-api-server.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { systemClock, systemRandom } from '../platform/system-clock.ts'
import { followNode, type NodeSource } from '../state/node.ts'
import { WatchBehindError } from '../../kube/errors.ts'
import { publish } from './publish.ts'
import { emptyPatch } from '../../stages/model/node-patch.ts'

const nodes = '/api/v1/nodes'

let server: FakeApiServer
let transport: KubeTransport
let shutdown: AbortController
let source: NodeSource

beforeEach(async () => {
  server = await startFakeApiServer()
  transport = server.connect()
  shutdown = new AbortController()
  server.put(nodes, { metadata: { name: 'n' }, spec: {} })
  source = followNode(transport, 'n', {
    clock: systemClock,
    random: systemRandom,
    wake: () => undefined,
    onFact: () => undefined,
    signal: shutdown.signal,
  })
  await source.synced
})

afterEach(async () => {
  shutdown.abort()
  transport.close()
  await server.stop()
})

const observedVersion = (): string => source.current()?.metadata.resourceVersion ?? ''
const uncordon = async (computedFrom: string): Promise<void> =>
  await publish(transport, source, { ...emptyPatch(), unschedulable: false }, computedFrom, shutdown.signal)
const patchCount = (): number => server.requests.filter(({ method }) => method === 'PATCH').length
const isCordoned = (): boolean =>
  (server.get(nodes, 'n')?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true

test('a patch that was computed from the current Node is written and seen before publish returns', async () => {
  const before = observedVersion()
  await publish(transport, source, { ...emptyPatch(), labels: { l: 'v' } }, before, shutdown.signal)
  expect([patchCount(), source.current()?.metadata.labels]).toEqual([1, { l: 'v' }])
  expect(observedVersion()).not.toBe(before)
})

test('a patch that was computed before somebody cordoned the Node is not written', async () => {
  const before = observedVersion()
  server.put(nodes, { metadata: { name: 'n' }, spec: { unschedulable: true } })
  await source.untilChanged(before, 5_000)
  expect(observedVersion()).not.toBe(before)
  await uncordon(before)
  expect([patchCount(), isCordoned()]).toEqual([0, true])
  await uncordon(observedVersion())
  expect([patchCount(), isCordoned()]).toEqual([1, false])
})

test('a patch that is not answered leaves the Node in doubt until it is read again', async () => {
  server.fault(({ method }) => method === 'PATCH', { kind: 'lose-answer' }, 1)
  server.fault(({ query }) => query.has('fieldSelector') && !query.has('watch'), { kind: 'slow', ms: 300 }, 1)
  server.endWatches('destroy')
  await expect(uncordon(observedVersion())).rejects.toThrow('PATCH')
  expect(source.isInDoubt()).toBe(true)
  await vi.waitFor(() => expect(source.isInDoubt()).toBe(false), 5_000)
})

test('the Node is in doubt while its watch is broken', async () => {
  await vi.waitFor(() => expect(server.requests.some(({ query }) => query.has('watch'))).toBe(true), 5_000)
  expect(source.isInDoubt()).toBe(false)
  server.endWatches('destroy')
  await vi.waitFor(() => expect(source.isInDoubt()).toBe(true), 5_000)
  await vi.waitFor(() => expect(source.isInDoubt()).toBe(false), 5_000)
})

test('a patch that is refused leaves nothing in doubt', async () => {
  server.fault(({ method }) => method === 'PATCH', { kind: 'status', status: 403 }, 1)
  await expect(uncordon(observedVersion())).rejects.toThrow('injected')
  expect(source.isInDoubt()).toBe(false)
})

test('a Node whose watch shows nothing is listed after a conflict, and the next patch is written', async () => {
  server.endWatches('destroy')
  server.fault(({ query }) => query.has('watch'), { kind: 'stream', text: '', after: 'hold' }, 1)
  const watchCount = (): number => server.requests.filter(({ query }) => query.has('watch')).length
  const before = watchCount()
  await vi.waitFor(() => expect(watchCount()).toBe(before + 1), 5_000)
  server.put(nodes, { metadata: { name: 'n' }, spec: { unschedulable: true } })
  await expect(uncordon(observedVersion())).rejects.toThrow(WatchBehindError)
  await vi.waitFor(() => expect(source.current()?.spec?.unschedulable).toBe(true), 3_000)
  await uncordon(observedVersion())
  expect(isCordoned()).toBe(false)
})
