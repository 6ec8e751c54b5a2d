import { beforeEach, expect, test } from 'vitest'
import { podsPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Pod } from '../../stages/model/pods.ts'
import { createLog } from '../telemetry/log.ts'
import { createEvictor, evictionRetryMs, type Evictor } from './evictions.ts'

let api: Sample
let transport: KubeTransport
let clock: VirtualClock
let pod: Pod

beforeEach(() => {
  deletedPods = []
  results = []
  api = sampleServer()
  transport = api.connect()
  clock = api.clock
  pod = putPod('p')
})

const putPod = (name: string): Pod => api.put(podsPath, { metadata: { name } }) as unknown as Pod

let deletedPods: string[] = []
let results: string[] = []
const evictorThat = ({ mayDelete }: { mayDelete: boolean }): Evictor =>
  createEvictor({
    transport,
    clock,
    random: { number: () => 0, hex: () => '' },
    log: createLog('silent', {}),
    signal: new AbortController().signal,
    mayDelete,
    onDeleted: (deletedPod) => deletedPods.push(deletedPod),
    onEnded: (result) => results.push(result),
  })
const refuse = (retryAfterSeconds?: number): void =>
  api.fault(({ path }) => path.endsWith('/eviction'), {
    kind: 'refuse',
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
const methods = (): string[] => api.sent.map(({ method, path }) => `${method} ${path.slice(podsPath.length)}`)

test('a refused eviction is retried soon at first and then less and less often', () => {
  let atMs = 0
  const attemptTimesMs: number[] = []
  for (let refusal = 0; refusal < 6; refusal++) attemptTimesMs.push((atMs += evictionRetryMs(atMs, 1, 0)))
  expect(attemptTimesMs).toEqual([1_000, 2_000, 4_000, 8_000, 12_000, 16_000])
  expect([evictionRetryMs(60_000, 1, 0), evictionRetryMs(60_000, 1, 1)]).toEqual([4_000, 6_000])
})

test('many refused evictions start with longer pauses, one a second together', () => {
  expect([1, 3, 10].map((refusedPods) => evictionRetryMs(0, refusedPods, 0))).toEqual([1_000, 3_000, 10_000])
})

test('fifty refused evictions are retried at most sixty times in any minute', () => {
  const random = createSeededRandom(1)
  const times = Array.from({ length: 50 }, (_, pod) => {
    const attempts: number[] = []
    for (let atMs = 0, refused = pod + 1; atMs < 600_000; refused = 50)
      attempts.push((atMs += evictionRetryMs(atMs, refused, random.number())))
    return attempts
  })
  const all = times.flat().toSorted((a, b) => a - b)
  const inMinute = all.map((atMs, from) => all.slice(from).filter((otherMs) => otherMs < atMs + 60_000).length)
  expect(Math.max(...inMinute)).toBeLessThanOrEqual(60)
})

test('all refused evictions of a node together are retried every two seconds', async () => {
  const evictor = evictorThat({ mayDelete: false })
  const pods = Array.from({ length: 10 }, (_, index) => putPod(`p${index}`))
  const refuseAll = async (): Promise<void> => {
    for (const one of pods) {
      refuse()
      await evictor.evict(one, false)
    }
  }
  await refuseAll()
  await clock.advance(60_000)
  await refuseAll()
  const retries = pods.map(({ metadata: { uid } }) => evictor.current().get(uid) as { readonly retryAtMs: number })
  expect(retries.map(({ retryAtMs }) => retryAtMs - clock.steadyMs())).toEqual(pods.map(() => 20_000))
})

test('an accepted eviction is on record until its pod is gone', async () => {
  const evictor = evictorThat({ mayDelete: false })
  await evictor.evict(pod, false)
  expect(evictor.current().get(pod.metadata.uid)).toEqual({ state: 'requested' })
  evictor.retain(new Set([pod.metadata.uid]))
  expect(evictor.current().size).toBe(1)
  evictor.retain(new Set())
  expect(evictor.current().size).toBe(0)
})

test('a pod that only the watch still shows is looked at again after four seconds', async () => {
  api.remove(podsPath, 'p')
  const evictor = evictorThat({ mayDelete: false })
  await evictor.evict(pod, false)
  const retryAtMs = clock.wallMs() + 4_000
  expect(evictor.current().get(pod.metadata.uid)).toMatchObject({ state: 'blocked', retryAtMs })
})

test('a refusal counts from the first one and backs off by how long it lasts', async () => {
  const evictor = evictorThat({ mayDelete: false })
  const startMs = clock.wallMs()
  refuse()
  await evictor.evict(pod, false)
  expect(evictor.current().get(pod.metadata.uid)).toMatchObject({
    state: 'blocked',
    sinceMs: startMs,
    retryAtMs: startMs + 1_000,
  })
  await clock.advance(4_000)
  refuse()
  await evictor.evict(pod, false)
  expect(evictor.current().get(pod.metadata.uid)).toMatchObject({ sinceMs: startMs, retryAtMs: startMs + 8_000 })
})

test('a refusal that names a time is retried then', async () => {
  const evictor = evictorThat({ mayDelete: false })
  refuse(10)
  await evictor.evict(pod, false)
  expect(evictor.current().get(pod.metadata.uid)).toMatchObject({ retryAtMs: clock.wallMs() + 10_000 })
})

test.for([
  { how: 'without an answer', fault: { kind: 'lose-request' }, message: 'POST' },
  { how: 'that the API server forbids', fault: { kind: 'refuse', code: 403 }, message: 'refused by a fault' },
] as const)('an eviction $how fails: no disruption budget blocks it', async ({ fault, message }) => {
  const evictor = evictorThat({ mayDelete: false })
  api.fault(({ path }) => path.endsWith('/eviction'), fault, 5)
  await expect(evictor.evict(pod, false)).rejects.toThrow(message)
  expect(evictor.current().size).toBe(0)
})

test('each request for an eviction is counted by its result', async () => {
  const [plain, forcing] = [evictorThat({ mayDelete: false }), evictorThat({ mayDelete: true })]
  refuse()
  await plain.evict(pod, false)
  api.fault(({ path }) => path.endsWith('/eviction'), { kind: 'refuse', code: 403 })
  await expect(plain.evict(pod, false)).rejects.toThrow('refused by a fault')
  await plain.evict(pod, false)
  await forcing.evict(putPod('q'), true)
  await plain.evict(pod, false)
  expect(results).toEqual(['blocked', 'failed', 'evicted', 'deleted', 'gone'])
})

test('a forced eviction deletes the pod where the chart allows it', async () => {
  const evictor = evictorThat({ mayDelete: true })
  await evictor.evict(pod, true)
  expect([methods(), api.get(podsPath, 'p')]).toEqual([['DELETE /p'], undefined])
  expect(deletedPods).toEqual(['default/p'])
  expect(evictor.current().get(pod.metadata.uid)).toEqual({ state: 'requested' })
})

test('a forced eviction respects the budgets and names the chart value where the chart forbids it', async () => {
  const evictor = evictorThat({ mayDelete: false })
  refuse()
  await evictor.evict(pod, true)
  expect(methods()).not.toContain('DELETE /p')
  expect(evictor.current().get(pod.metadata.uid)).toMatchObject({
    message: expect.stringContaining('drain.allowDelete') as string,
  })
})

test('an ordinary eviction deletes nothing even where the chart allows it', async () => {
  await evictorThat({ mayDelete: true }).evict(pod, false)
  expect(methods()).toEqual(['GET /p', 'POST /p/eviction'])
})

test('a pod of another uid is not deleted', async () => {
  const other = { ...pod, metadata: { ...pod.metadata, uid: 'another' } }
  await expect(evictorThat({ mayDelete: true }).evict(other, true)).rejects.toThrow('precondition')
  expect([api.get(podsPath, 'p') !== undefined, deletedPods]).toEqual([true, []])
})

test('the counters of a budget are updated once a minute, another cause at once', async () => {
  const evictor = evictorThat({ mayDelete: false })
  const shownAfter = async (message: string): Promise<string> => {
    api.fault(({ path }) => path.endsWith('/eviction'), {
      kind: 'refuse',
      code: 429,
      reason: 'TooManyRequests',
      message,
    })
    await evictor.evict(pod, false)
    const eviction = evictor.current().get(pod.metadata.uid)
    return eviction?.state === 'blocked' ? eviction.message : ''
  }
  const needs = (healthy: number, has: number): string => `budget web-2 needs ${healthy} healthy pods and has ${has}`
  expect(await shownAfter(needs(26, 25))).toBe(needs(26, 25))
  await clock.advance(30_000)
  expect(await shownAfter(needs(25, 24))).toBe(needs(26, 25))
  await clock.advance(31_000)
  expect(await shownAfter(needs(24, 23))).toBe(needs(24, 23))
  expect(await shownAfter('budget web-3 needs 24 healthy pods and has 23')).toContain('web-3')
})

test.each([
  [400, 'admission webhook "evict.example.com" denied the request: the operator rolls it'],
  [403, 'admission webhook "evict.example.com" denied the request: the operator rolls it'],
  [500, 'admission webhook "evict.example.com" denied the request: the operator rolls it'],
  [500, 'Internal error occurred: failed calling webhook "evict.example.com": failed to call webhook: EOF'],
])('an eviction that a webhook refuses with %i (%s) is asked for again within five seconds', async (code, message) => {
  api.fault(({ path }) => path.endsWith('/eviction'), { kind: 'refuse', code, message }, Infinity)
  const evictor = evictorThat({ mayDelete: false })
  for (let attempt = 0; attempt < 20; attempt++) {
    await evictor.evict(pod, false)
    const eviction = evictor.current().get(pod.metadata.uid)
    const retryAtMs = eviction?.state === 'blocked' ? eviction.retryAtMs : Infinity
    expect(retryAtMs - clock.steadyMs()).toBeLessThanOrEqual(5_000)
    await clock.advance(retryAtMs - clock.steadyMs())
  }
  expect(new Set(results)).toEqual(new Set(['blocked']))
})

test('owners of evicted pods that tolerate the cordon are known, with the pods that were there then', async () => {
  const tolerations = [{ operator: 'Exists' }] as const
  const owned = (uid: string, rest: object = {}): Pod => {
    const { metadata, ...one } = putPod(`p-${uid}`)
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Job', name: 'j', uid: 'job', controller: true }]
    return { ...one, metadata: { ...metadata, ownerReferences }, spec: { tolerations }, ...rest }
  }
  const evictor = evictorThat({ mayDelete: false })
  const [first, second, other] = [owned('a'), owned('b'), owned('c', { spec: {} })]
  evictor.retain(new Set([first, second].map(({ metadata }) => metadata.uid)))
  await evictor.evict(other, false)
  expect(evictor.evictedOwners()).toEqual(new Map())
  await evictor.evict(first, false)
  const uids = new Set([first, second].map(({ metadata }) => metadata.uid))
  expect(evictor.evictedOwners()).toEqual(new Map([['job', { atMs: clock.steadyMs(), uids }]]))
  const before = clock.steadyMs()
  await clock.advance(1_000)
  evictor.retain(new Set(['what-came']))
  await evictor.evict(second, false)
  expect(evictor.evictedOwners().get('job')).toEqual({ atMs: before, uids })
})
