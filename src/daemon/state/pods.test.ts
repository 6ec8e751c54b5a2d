import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/fake-api-server.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { systemClock, systemRandom } from '../platform/system-clock.ts'
import { createPodSource, type PodSource } from './pods.ts'

const podsPath = '/api/v1/pods'

let api: FakeApiServer
let transport: KubeTransport
let stopping: AbortController
let uidsSeen: string[][]
let wakes: number
let shown: (string[] | string)[]
let source: PodSource

beforeEach(async () => {
  api = await startFakeApiServer([podsPath])
  transport = api.connect()
  stopping = new AbortController()
  uidsSeen = []
  wakes = 0
  shown = []
  source = createPodSource({
    transport,
    clock: systemClock,
    random: systemRandom,
    nodeName: 'n',
    onUids: (uids) => void uidsSeen.push([...uids]),
    onFact: () => undefined,
    onUnfollowed: () => undefined,
    wake() {
      wakes++
      shown.push(podNames())
    },
    signal: stopping.signal,
  })
})
afterEach(async () => {
  stopping.abort()
  transport.close()
  await api.stop()
})

const putPod = (name: string): string =>
  api.put(podsPath, { metadata: { name, namespace: 'd' }, spec: { nodeName: 'n', containers: ['large'] }, status: {} })
    .metadata.uid
const podNames = (): string[] | string => {
  const current = source.current()
  return current.known ? current.value.pods.map(({ metadata }) => metadata.name) : current.why
}

test('the pods are unknown until somebody follows them', () => {
  expect(podNames()).toBe('the pods of this node are not watched')
  expect(api.requests).toEqual([])
})

test('followed pods are those of the own node, without what nobody reads', async () => {
  const uid = putPod('a')
  source.follow('any')
  await vi.waitFor(() => expect(podNames()).toEqual(['a']))
  expect(api.requests[0]?.query.get('fieldSelector')).toBe('spec.nodeName=n')
  expect(source.current()).toMatchObject({ value: { since: 'any', pods: [{ spec: { nodeName: 'n' } }] } })
  expect(JSON.stringify(source.current())).not.toContain('large')
  expect([uidsSeen.at(-1), wakes > 0]).toEqual([[uid], true])
})

test('a pod shows whether it is Ready, and no other condition', async () => {
  const conditions = [
    { type: 'Ready', status: 'True', lastTransitionTime: '2026-11-22T00:00:00Z' },
    { type: 'PodScheduled', status: 'True' },
  ]
  api.put(podsPath, {
    metadata: { name: 'a', namespace: 'd' },
    spec: { nodeName: 'n' },
    status: { phase: 'Running', conditions },
  })
  const [found] = await source.listNow(stopping.signal)
  expect(found?.status).toEqual({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
})

test('pods that come and go are seen', async () => {
  source.follow('any')
  await vi.waitFor(() => expect(podNames()).toEqual([]))
  putPod('a')
  await vi.waitFor(() => expect(podNames()).toEqual(['a']))
  api.remove(podsPath, 'a')
  await vi.waitFor(() => expect(podNames()).toEqual([]))
})

test('the cordon starts a LIST of its own, and nothing is known until it came', async () => {
  putPod('a')
  source.follow('any')
  await vi.waitFor(() => expect(podNames()).toEqual(['a']))
  source.follow('cordoned')
  expect(podNames()).toBe('the pods of this node are not watched')
  await vi.waitFor(() => expect(source.current()).toMatchObject({ value: { since: 'cordoned' } }))
  const lists = api.requests.filter(({ query }) => query.get('watch') === null)
  expect(lists).toHaveLength(2)
})

test('following again what is followed changes nothing', async () => {
  source.follow('any')
  await vi.waitFor(() => expect(podNames()).toEqual([]))
  source.follow('any')
  expect(podNames()).toEqual([])
})

test('an end of following forgets the pods and their evictions', async () => {
  putPod('a')
  source.follow('any')
  await vi.waitFor(() => expect(podNames()).toEqual(['a']))
  source.follow('no')
  expect([podNames(), uidsSeen.at(-1)]).toEqual(['the pods of this node are not watched', []])
  await vi.waitFor(() => expect(api.openWatches()).toBe(0))
})

test('pods are unknown while their watch is broken, and known again with the next watch', async () => {
  putPod('a')
  source.follow('cordoned')
  await vi.waitFor(() => expect(api.openWatches()).toBe(1))
  expect(podNames()).toEqual(['a'])
  api.fault(({ query }) => query.has('watch'), { kind: 'status', status: 500 }, 1)
  api.endWatches('destroy')
  putPod('b')
  await vi.waitFor(() => expect(podNames()).toContain('the watch of them is broken'))
  shown = []
  await vi.waitFor(() => expect(podNames()).toEqual(['a', 'b']), 5_000)
  expect(shown).not.toContainEqual(['a'])
})

test('pods are known only from a new LIST after their watch was refused for now', async () => {
  putPod('a')
  source.follow('cordoned')
  await vi.waitFor(() => expect(api.openWatches()).toBe(1))
  const watchCount = (): number => api.requests.filter(({ query }) => query.has('watch')).length
  api.fault(({ query }) => query.has('watch'), { kind: 'status', status: 429 }, 1)
  api.endWatches('destroy')
  await vi.waitFor(() => expect(watchCount()).toBe(2), 5_000)
  await vi.waitFor(() => expect(podNames()).toContain('the watch of them is broken'))
  putPod('b') // later than the LIST before the refusal
  shown = []
  await vi.waitFor(() => expect(podNames()).toEqual(['a', 'b']), 5_000)
  expect(shown).not.toContainEqual(['a'])
})

test('a LIST of this moment does not make the pods known while their watch is broken', async () => {
  source.follow('cordoned')
  await vi.waitFor(() => expect(api.openWatches()).toBe(1))
  api.fault(({ query }) => query.has('watch'), { kind: 'status', status: 500 }, 100)
  api.endWatches('destroy')
  await vi.waitFor(() => expect(source.current().known).toBe(false))
  putPod('a')
  expect(await source.listNow(stopping.signal)).toHaveLength(1)
  expect(source.current().known).toBe(false)
})

test('a LIST of this moment becomes current while the pods are followed', async () => {
  api.fault(({ query }) => query.has('watch'), { kind: 'stream', text: '', after: 'hold' })
  source.follow('cordoned')
  await vi.waitFor(() => expect(podNames()).toEqual([]))
  putPod('a')
  expect((await source.listNow(stopping.signal)).map(({ metadata }) => metadata.name)).toEqual(['a'])
  expect(podNames()).toEqual(['a'])
})

test('a LIST of this moment is no observation while nobody follows', async () => {
  putPod('a')
  expect(await source.listNow(stopping.signal)).toHaveLength(1)
  expect(source.current().known).toBe(false)
})
