import { expect, test } from 'vitest'
import { NoResponseError, retryAfterMsOf } from '../../../src/kube/errors.ts'
import type { Fault } from './faults.ts'
import { createLease, leasesPath, namesOf, nodesPath, sampleServer, type Sample } from './sample-server.ts'

/** Sends one creation under a fault and says what the client got and when, and whether the object exists then. */
async function createUnder(fault: Fault, sample: Sample = sampleServer()): Promise<Record<string, unknown>> {
  const { clock, server, connect } = sample
  server.faults.rules = [{ name: 'under test', fault }]
  const startedMs = clock.monotonicMs()
  const outcome: Record<string, unknown> = {}
  const sent = createLease(connect(), 'a').then(
    () => ({ got: 'answer' }),
    (error: unknown) => ({ got: error }),
  )
  void sent.then(({ got }) => Object.assign(outcome, { got, afterMs: clock.monotonicMs() - startedMs }))
  await clock.advance(0)
  outcome['existsAtOnce'] = namesOf(server, 'leases').includes('a')
  await clock.advance(60_000)
  await sent
  outcome['exists'] = namesOf(server, 'leases').includes('a')
  return outcome
}

const unanswered = (mayHaveBeenSent: boolean): unknown =>
  expect.toSatisfy((error) => error instanceof NoResponseError && error.mayHaveBeenSent === mayHaveBeenSent)

test.each<[string, Fault, Record<string, unknown>]>([
  ['a refused connection', { kind: 'refuse-connection' }, { got: unanswered(false), exists: false, afterMs: 0 }],
  ['a lost request', { kind: 'lose-request' }, { got: unanswered(true), exists: false, afterMs: 0 }],
  ['a lost answer', { kind: 'lose-answer' }, { got: unanswered(true), existsAtOnce: true, afterMs: 0 }],
  [
    'a late commit',
    { kind: 'commit-late', afterMs: 5_000 },
    { got: unanswered(true), existsAtOnce: false, exists: true, afterMs: 0 },
  ],
  ['silence', { kind: 'silent' }, { got: unanswered(true), exists: false, afterMs: 30_000 }],
  [
    'a slow answer',
    { kind: 'slow', byMs: 4_000 },
    { got: 'answer', existsAtOnce: false, exists: true, afterMs: 4_000 },
  ],
  ['an answer that is too slow', { kind: 'slow', byMs: 31_000 }, { got: unanswered(true), afterMs: 30_000 }],
  [
    'an error after the commit',
    { kind: 'fail-after-commit', code: 500 },
    { got: expect.objectContaining({ status: 500 }), exists: true },
  ],
  [
    'a refusal by a policy',
    { kind: 'refuse', code: 403, reason: 'Forbidden', message: 'not this one' },
    { got: expect.objectContaining({ status: 403, reason: 'Forbidden', message: 'not this one' }), exists: false },
  ],
])('a creation under %s takes effect, is answered and takes time as that fault says', async (_, fault, expected) => {
  expect(await createUnder(fault)).toMatchObject(expected)
})

test('an overloaded server tells when to try again', async () => {
  const { got } = await createUnder({ kind: 'refuse', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 7 })
  expect(retryAfterMsOf(got)).toBe(7_000)
})

test('a rule hits only what it matches, as often as it says, and is counted', async () => {
  const { server, connect } = sampleServer()
  const client = connect()
  server.faults.rules = [
    {
      name: 'two creations',
      fault: { kind: 'refuse', code: 500 },
      matches: ({ verb, location }) => verb === 'create' && location?.resource.plural === 'leases',
      times: 2,
    },
  ]
  await client.json('GET', nodesPath)
  await expect(createLease(client, 'a')).rejects.toMatchObject({ status: 500 })
  await expect(createLease(client, 'a')).rejects.toMatchObject({ status: 500 })
  await createLease(client, 'a')
  expect(server.faults.hits.get('two creations')).toBe(2)
})

test('a read of any version from a replica that is behind shows the past, a consistent one the present', async () => {
  const { clock, server, connect } = sampleServer()
  const client = connect()
  await createLease(client, 'a')
  await clock.advance(10_000)
  await createLease(client, 'b')
  await client.json('DELETE', `${leasesPath}/a`)
  server.faults.rules = [{ name: 'replica', fault: { kind: 'stale', byMs: 5_000 } }]
  const list = async (query: Record<string, number>): Promise<string[]> => {
    const { items } = await client.json<{ items: { metadata: { name: string } }[] }>('GET', leasesPath, { query })
    return items.map(({ metadata }) => metadata.name)
  }
  expect(await list({ resourceVersion: 0 })).toEqual(['a'])
  expect(await list({})).toEqual(['b'])
  expect(await client.json('GET', `${leasesPath}/a`, { query: { resourceVersion: 0 } })).toMatchObject({
    metadata: { name: 'a' },
  })
  await expect(client.json('GET', `${leasesPath}/b`, { query: { resourceVersion: 0 } })).rejects.toMatchObject({
    status: 404,
  })
})

test('the same seed gives the same faults, uids and audit log', async () => {
  const run = async (seed: number): Promise<unknown> => {
    const sample = sampleServer(seed)
    sample.server.faults.rules = [{ name: 'half', fault: { kind: 'lose-answer' }, probability: 0.5 }]
    const client = sample.connect()
    const uids: unknown[] = []
    for (let number = 0; number < 20; number++) {
      const created = createLease(client, `l${number}`).then(
        ({ metadata }) => metadata.uid,
        () => 'lost',
      )
      await sample.clock.advance(100)
      uids.push(await created)
    }
    return { uids, audit: sample.server.audit }
  }
  expect(await run(7)).toEqual(await run(7))
  expect(await run(7)).not.toEqual(await run(8))
})
