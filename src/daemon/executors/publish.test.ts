import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodesPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { emptyPatch } from '../../stages/model/plan.ts'
import { followNode, type NodeSource } from '../state/node.ts'
import { WatchBehindError } from '../../kube/errors.ts'
import { publish } from './publish.ts'

let api: Sample
let transport: KubeTransport
let shutdown: AbortController
let source: NodeSource

beforeEach(async () => {
  api = sampleServer()
  transport = api.connect()
  shutdown = new AbortController()
  api.put(nodesPath, { metadata: { name: 'n' } })
  source = followNode(transport, 'n', {
    clock: api.clock,
    random: createSeededRandom(1),
    wake: () => undefined,
    onFact: () => undefined,
    signal: shutdown.signal,
  })
  await api.eventually(() => expect(api.server.openWatches()).toBe(1))
})
afterEach(() => shutdown.abort())

const observedVersion = (): string => source.current()?.metadata.resourceVersion ?? ''
const publishes = async (patch: object, computedFrom: string): Promise<void> => {
  let isEnded = false
  const end = (): void => void (isEnded = true)
  const published = publish(transport, source, { ...emptyPatch(), ...patch }, computedFrom, shutdown.signal)
  published.then(end, end)
  await api.eventually(() => expect(isEnded).toBe(true))
  await published
}
const uncordon = async (computedFrom: string): Promise<void> => await publishes({ unschedulable: false }, computedFrom)
const cordonByAnother = (): void => void api.put(nodesPath, { metadata: { name: 'n' }, spec: { unschedulable: true } })
const patchCount = (): number => api.sent.filter(({ method }) => method === 'PATCH').length
const isCordoned = (): boolean =>
  (api.get(nodesPath, 'n')?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true

test('a patch that was computed from the current Node is written and seen before publish returns', async () => {
  const before = observedVersion()
  await publishes({ labels: { l: 'v' } }, before)
  expect([patchCount(), source.current()?.metadata.labels]).toEqual([1, { l: 'v' }])
  expect(observedVersion()).not.toBe(before)
})

test('a patch that was computed before somebody cordoned the Node is not written', async () => {
  const before = observedVersion()
  cordonByAnother()
  await source.untilChanged(before, 5_000)
  expect(observedVersion()).not.toBe(before)
  await uncordon(before)
  expect([patchCount(), isCordoned()]).toEqual([0, true])
  await uncordon(observedVersion())
  expect([patchCount(), isCordoned()]).toEqual([1, false])
})

test('a patch that is not answered leaves the Node in doubt until it is read again', async () => {
  api.fault(({ method }) => method === 'PATCH', { kind: 'lose-answer' }, 1)
  api.fault(({ verb }) => verb === 'list', { kind: 'slow', byMs: 300 }, 1)
  api.breakConnections()
  await expect(uncordon(observedVersion())).rejects.toThrow('PATCH')
  expect(source.isInDoubt()).toBe(true)
  await api.eventually(() => expect(source.isInDoubt()).toBe(false), 5_000)
})

test('the Node is in doubt while its watch is broken', async () => {
  await api.eventually(() => expect(api.sent.some(({ isWatch }) => isWatch)).toBe(true), 5_000)
  expect(source.isInDoubt()).toBe(false)
  api.breakConnections()
  await api.eventually(() => expect(source.isInDoubt()).toBe(true), 5_000)
  await api.eventually(() => expect(source.isInDoubt()).toBe(false), 5_000)
})

test('a patch that is refused leaves nothing in doubt', async () => {
  api.fault(({ method }) => method === 'PATCH', { kind: 'refuse', code: 403 }, 1)
  await expect(uncordon(observedVersion())).rejects.toThrow('refused by a fault')
  expect(source.isInDoubt()).toBe(false)
})

test('a Node whose watch shows nothing is listed after a conflict, and the next patch is written', async () => {
  api.breakConnections()
  api.fault(({ verb }) => verb === 'watch', { kind: 'slow-watch', byMs: 600_000 }, 1)
  const watchCount = (): number => api.sent.filter(({ isWatch }) => isWatch).length
  const before = watchCount()
  await api.eventually(() => expect(watchCount()).toBe(before + 1), 5_000)
  cordonByAnother()
  await expect(uncordon(observedVersion())).rejects.toThrow(WatchBehindError)
  await api.eventually(() => expect(source.current()?.spec?.unschedulable).toBe(true), 3_000)
  await uncordon(observedVersion())
  expect(isCordoned()).toBe(false)
})
