import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/fake-api-server.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../test/support/virtual-clock.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { policiesPath } from '../schemas/api.ts'
import { createPolicyWatch, type PolicyWatch } from './policy-watch.ts'

let api: FakeApiServer
let transport: KubeTransport
let stopping: AbortController
let changes: number
let failures: number
let clock: VirtualClock
let watch: PolicyWatch

beforeEach(async () => {
  api = await startFakeApiServer([policiesPath])
  transport = api.connect()
  stopping = new AbortController()
  changes = 0
  failures = 0
  clock = createVirtualClock()
  watch = createPolicyWatch(transport, {
    clock,
    random: createSeededRandom(1),
    onChange: () => void changes++,
    onFact: ({ fact }) => void (fact === 'failed' && failures++),
    signal: stopping.signal,
  })
})
afterEach(async () => {
  stopping.abort()
  transport.close()
  await api.stop()
})

test('nobody who names no policy costs a request', () => {
  expect([watch.of(undefined), watch.of(''), api.requests.length]).toEqual([undefined, undefined, 0])
})

test('a policy is unknown, missing, found and missing again', async () => {
  expect(watch.of('careful')).toEqual({ state: 'unknown', why: 'the DeploymentPolicies are not listed yet' })
  await vi.waitFor(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
  expect(changes).toBeGreaterThan(0)
  const spec = { default: { budget: { count: 1 }, strategy: { fixed: {} } } }
  const before = changes
  api.put(policiesPath, { metadata: { name: 'careful', generation: 1 }, spec })
  await vi.waitFor(() => expect(watch.of('careful')).toMatchObject({ state: 'found', generation: 1, spec }))
  expect(watch.of('careful')).toBe(watch.of('careful'))
  expect(changes).toBeGreaterThan(before)
  api.remove(policiesPath, 'careful')
  await vi.waitFor(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
})

test('a refused LIST is said with its answer, as the same object, until the right is there', async () => {
  api.fault(({ path }) => path === policiesPath, { kind: 'status', status: 403, message: 'no such right' }, 1)
  watch.of('careful')
  await vi.waitFor(() => expect(watch.of('careful')).toMatchObject({ state: 'unknown', isRefused: true }))
  expect(watch.of('careful')).toMatchObject({ why: expect.stringContaining('no such right') as string })
  expect(watch.of('careful')).toBe(watch.of('careful'))
  await clock.advance(60_000)
  await vi.waitFor(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
})

test.each([429, 500])('an answer of %i is not taken for a refusal', async (status) => {
  api.fault(({ path }) => path === policiesPath, { kind: 'status', status }, 1)
  watch.of('careful')
  await vi.waitFor(() => expect(failures).toBe(1))
  expect(watch.of('careful')).toEqual({ state: 'unknown', why: 'the DeploymentPolicies are not listed yet' })
})
