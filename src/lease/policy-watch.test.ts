import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import { policiesPath } from '../schemas/api.ts'
import { createPolicyWatch, type PolicyWatch } from './policy-watch.ts'

let api: Sample
let stopping: AbortController
let changes: number
let failures: number
let watch: PolicyWatch

beforeEach(() => {
  api = sampleServer()
  stopping = new AbortController()
  changes = 0
  failures = 0
  watch = createPolicyWatch(api.connect(), {
    clock: api.clock,
    random: createSeededRandom(1),
    onChange: () => void changes++,
    onFact: ({ fact }) => void (fact === 'failed' && failures++),
    signal: stopping.signal,
  })
})
afterEach(() => stopping.abort())

test('nobody who names no policy costs a request', () => {
  expect([watch.of(undefined), watch.of(''), api.sent.length]).toEqual([undefined, undefined, 0])
})

test('a policy is unknown, missing, found and missing again', async () => {
  expect(watch.of('careful')).toEqual({ state: 'unknown', why: 'the DeploymentPolicies are not listed yet' })
  await api.eventually(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
  expect(changes).toBeGreaterThan(0)
  const spec = { default: { budget: { count: 1 }, strategy: { fixed: {} } } }
  const before = changes
  api.put(policiesPath, { metadata: { name: 'careful' }, spec })
  await api.eventually(() => expect(watch.of('careful')).toMatchObject({ state: 'found', generation: 1, spec }))
  expect(watch.of('careful')).toBe(watch.of('careful'))
  expect(changes).toBeGreaterThan(before)
  api.remove(policiesPath, 'careful')
  await api.eventually(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
})

test('a refused LIST is said with its answer, as the same object, until the right is there', async () => {
  api.fault(({ path }) => path === policiesPath, { kind: 'refuse', code: 403, message: 'no such right' }, 1)
  watch.of('careful')
  await api.eventually(() => expect(watch.of('careful')).toMatchObject({ state: 'unknown', isRefused: true }))
  expect(watch.of('careful')).toMatchObject({ why: expect.stringContaining('no such right') as string })
  expect(watch.of('careful')).toBe(watch.of('careful'))
  await api.eventually(() => expect(watch.of('careful')).toEqual({ state: 'missing' }))
})

test.each([429, 500])('an answer of %i is not taken for a refusal', async (status) => {
  api.fault(({ path }) => path === policiesPath, { kind: 'refuse', code: status }, 1)
  watch.of('careful')
  await api.eventually(() => expect(failures).toBe(1))
  expect(watch.of('careful')).toEqual({ state: 'unknown', why: 'the DeploymentPolicies are not listed yet' })
})
