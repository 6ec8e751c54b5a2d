import { afterEach, beforeEach, expect, test } from 'vitest'
import { podsPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { createPodSource, type PodSource } from './pods.ts'

let api: Sample
let stopping: AbortController
let uidsSeen: string[][]
let wakes: number
let shown: (string[] | string)[]
let source: PodSource

beforeEach(() => {
  api = sampleServer()
  stopping = new AbortController()
  uidsSeen = []
  wakes = 0
  shown = []
  source = createPodSource({
    transport: api.connect(),
    clock: api.clock,
    random: createSeededRandom(1),
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
afterEach(() => stopping.abort())

const putPod = (name: string): string =>
  api.put(podsPath, { metadata: { name }, spec: { nodeName: 'n', containers: ['large'] } }).metadata.uid
const podNames = (): string[] | string => {
  const current = source.current()
  return current.known ? current.value.pods.map(({ metadata }) => metadata.name) : current.why
}

test('the pods are unknown until somebody follows them', () => {
  expect(podNames()).toBe('the pods of this node are not watched')
  expect(api.sent).toEqual([])
})

test('followed pods are those of the own node, without what nobody reads', async () => {
  const uid = putPod('a')
  source.follow('any')
  await api.eventually(() => expect(podNames()).toEqual(['a']))
  expect(api.sent[0]?.query['fieldSelector']).toBe('spec.nodeName=n')
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
    metadata: { name: 'a' },
    spec: { nodeName: 'n' },
    status: { phase: 'Running', conditions },
  })
  const [found] = await source.listNow(stopping.signal)
  expect(found?.status).toEqual({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
})

test('a static pod, and no other, shows which containers it has', async () => {
  const containerStatuses = [{ name: 'etcd', containerID: 'containerd://1', image: 'etcd' }, { name: 'waits' }]
  const status = { phase: 'Running', containerStatuses }
  const annotations = { 'kubernetes.io/config.mirror': 'x' }
  api.put(podsPath, { metadata: { name: 'static', annotations }, spec: { nodeName: 'n' }, status })
  api.put(podsPath, { metadata: { name: 'usual' }, spec: { nodeName: 'n' }, status })
  const found = await source.listNow(stopping.signal)
  expect(found.map((pod) => pod.status?.containerStatuses)).toEqual([
    [{ containerID: 'containerd://1' }, {}],
    undefined,
  ])
})

test('pods that come and go are seen', async () => {
  source.follow('any')
  await api.eventually(() => expect(podNames()).toEqual([]))
  putPod('a')
  await api.eventually(() => expect(podNames()).toEqual(['a']))
  api.remove(podsPath, 'a')
  await api.eventually(() => expect(podNames()).toEqual([]))
})

test('the cordon starts a LIST of its own, and nothing is known until it came', async () => {
  putPod('a')
  source.follow('any')
  await api.eventually(() => expect(podNames()).toEqual(['a']))
  source.follow('cordoned')
  expect(podNames()).toBe('the pods of this node are not watched')
  await api.eventually(() => expect(source.current()).toMatchObject({ value: { since: 'cordoned' } }))
  const lists = api.sent.filter(({ isWatch }) => !isWatch)
  expect(lists).toHaveLength(2)
})

test('following again what is followed changes nothing', async () => {
  source.follow('any')
  await api.eventually(() => expect(podNames()).toEqual([]))
  source.follow('any')
  expect(podNames()).toEqual([])
})

test('an end of following forgets the pods and their evictions', async () => {
  putPod('a')
  source.follow('any')
  await api.eventually(() => expect(podNames()).toEqual(['a']))
  source.follow('no')
  expect([podNames(), uidsSeen.at(-1)]).toEqual(['the pods of this node are not watched', []])
  await api.eventually(() => expect(api.server.openWatches()).toBe(0))
})

test('pods are unknown while their watch is broken, and known again with the next watch', async () => {
  putPod('a')
  source.follow('cordoned')
  await api.eventually(() => expect(api.server.openWatches()).toBe(1))
  expect(podNames()).toEqual(['a'])
  api.fault(({ verb }) => verb === 'watch', { kind: 'refuse', code: 500 }, 1)
  api.breakConnections()
  putPod('b')
  await api.eventually(() => expect(podNames()).toContain('their watch is broken'))
  shown = []
  await api.eventually(() => expect(podNames()).toEqual(['a', 'b']), 5_000)
  expect(shown).not.toContainEqual(['a'])
})

test('pods are known only from a new LIST after their watch was refused for now', async () => {
  putPod('a')
  source.follow('cordoned')
  await api.eventually(() => expect(api.server.openWatches()).toBe(1))
  const watchCount = (): number => api.sent.filter(({ isWatch }) => isWatch).length
  api.fault(({ verb }) => verb === 'watch', { kind: 'refuse', code: 429 }, 1)
  api.breakConnections()
  await api.eventually(() => expect(watchCount()).toBe(2), 5_000)
  await api.eventually(() => expect(podNames()).toContain('their watch is broken'))
  putPod('b') // later than the LIST before the refusal
  shown = []
  await api.eventually(() => expect(podNames()).toEqual(['a', 'b']), 5_000)
  expect(shown).not.toContainEqual(['a'])
})

test('a direct LIST does not make the pods known while their watch is broken', async () => {
  source.follow('cordoned')
  await api.eventually(() => expect(api.server.openWatches()).toBe(1))
  api.fault(({ verb }) => verb === 'watch', { kind: 'refuse', code: 500 }, 100)
  api.breakConnections()
  await api.eventually(() => expect(source.current().known).toBe(false))
  putPod('a')
  expect(await source.listNow(stopping.signal)).toHaveLength(1)
  expect(source.current().known).toBe(false)
})

test('a direct LIST becomes current while the pods are followed', async () => {
  api.fault(({ verb }) => verb === 'watch', { kind: 'slow-watch', byMs: 600_000 })
  source.follow('cordoned')
  await api.eventually(() => expect(podNames()).toEqual([]))
  putPod('a')
  expect((await source.listNow(stopping.signal)).map(({ metadata }) => metadata.name)).toEqual(['a'])
  expect(podNames()).toEqual(['a'])
})

test('a direct LIST is not an observation while the pods are not followed', async () => {
  putPod('a')
  expect(await source.listNow(stopping.signal)).toHaveLength(1)
  expect(source.current().known).toBe(false)
})
