import { expect, test } from 'vitest'
import { listAll } from '../../../src/kube/list.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { type Reflector, type ReflectorFact, startReflector } from '../../../src/kube/reflector.ts'
import { createSeededRandom } from '../../support/virtual-clock.ts'
import type { Fault } from './faults.ts'
import { createLease, createNode, leasesPath, merge, nodesPath, type Sample, sampleServer } from './sample-server.ts'
import type { SimClient } from './client.ts'

type Followed = {
  readonly client: SimClient
  readonly reflector: Reflector<KubeObject>
  readonly changes: string[]
  readonly facts: string[]
}

function follow({ clock, connect }: Sample, path: string, query: Record<string, string> = {}): Followed {
  const client = connect()
  const changes: string[] = []
  const facts: string[] = []
  const nameOf = (fact: ReflectorFact): string =>
    fact.fact === 'failed' ? `failed${fact.willRelist ? ', will list' : ''}` : fact.fact
  const reflector = startReflector<KubeObject>(client, {
    clock,
    random: createSeededRandom(3),
    path,
    query,
    onChange: (update) => changes.push(...update.changes.map(({ type, key }) => `${type} ${key}`)),
    onFact: (fact) => facts.push(nameOf(fact)),
    signal: new AbortController().signal,
  })
  return { client, reflector, changes, facts }
}

test('a reflector follows a collection through list and watch', async () => {
  const sample = sampleServer()
  const { clock, admin } = sample
  await createLease(admin, 'a')
  const { changes, facts } = follow(sample, leasesPath)
  await clock.advance(1_000)
  await createLease(admin, 'b')
  await admin.json('DELETE', `${leasesPath}/a`)
  await clock.advance(1_000)
  expect(changes).toEqual(['added a', 'added b', 'deleted a'])
  expect(facts).toEqual(['listed', 'watching'])
})

test('bookmarks keep a watch alive on which nothing else happens', async () => {
  const sample = sampleServer()
  const { clock } = sample
  const { reflector, facts } = follow(sample, leasesPath)
  await clock.advance(290_000)
  expect(reflector.ageMs()).toBeLessThan(61_000)
  expect(facts).toEqual(['listed', 'watching'])
  await clock.advance(400_000)
  expect(facts).toEqual(['listed', 'watching', 'watch-ended', 'watching'])
})

test.each<[string, Fault, string[]]>([
  ['ends in good order', { kind: 'cut-watch', afterMs: 2_000, how: 'end' }, ['watch-ended', 'watching']],
  ['breaks', { kind: 'cut-watch', afterMs: 2_000, how: 'break' }, ['failed', 'watching']],
  ['ends inside an event', { kind: 'cut-watch', afterMs: 2_000, how: 'tear' }, ['failed', 'watching']],
  ['ends with 410', { kind: 'expire-watch', afterMs: 2_000 }, ['failed, will list', 'listed', 'watching']],
])('a reflector whose watch %s misses nothing', async (_, fault, expected) => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  server.faults.rules = [{ name: 'watch', fault, times: 1 }]
  const { changes, facts } = follow(sample, leasesPath)
  await clock.advance(1_000)
  await createLease(admin, 'a')
  await clock.advance(10_000)
  await createLease(admin, 'b')
  await clock.advance(10_000)
  expect(changes).toEqual(['added a', 'added b'])
  expect(facts).toEqual(['listed', 'watching', ...expected])
})

test('events of a slow watch come late and in order', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  server.faults.rules = [{ name: 'slow', fault: { kind: 'slow-watch', byMs: 3_000 } }]
  const { changes } = follow(sample, leasesPath)
  await clock.advance(0)
  await createLease(admin, 'a')
  await clock.advance(500)
  await createLease(admin, 'b')
  await clock.advance(2_499)
  expect(changes).toEqual([])
  await clock.advance(1)
  expect(changes).toEqual(['added a'])
  await clock.advance(500)
  expect(changes).toEqual(['added a', 'added b'])
})

test.each(['resume', 'reset'] as const)(
  'a watch of a client whose network was cut and healed by %s shows everything in the end',
  async (how) => {
    const sample = sampleServer()
    const { clock, admin } = sample
    const { client, changes } = follow(sample, leasesPath)
    await clock.advance(0)
    client.cut()
    await createLease(admin, 'a')
    await clock.advance(20_000)
    expect(changes).toEqual([])
    client.heal(how)
    await clock.advance(5_000)
    expect(changes).toEqual(['added a'])
  },
)

test('a server that was away shows on its watches only what a client has not seen', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  const { changes, facts } = follow(sample, leasesPath)
  await clock.advance(0)
  await createLease(admin, 'a')
  await clock.advance(0)
  server.stop()
  await clock.advance(10_000)
  server.start()
  await createLease(admin, 'b')
  await clock.advance(40_000)
  expect(changes).toEqual(['added a', 'added b'])
  expect(facts.filter((fact) => fact === 'listed')).toHaveLength(1)
})

test('a server that comes back with an empty cache makes its watches list again', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  const { client, changes, facts } = follow(sample, leasesPath)
  await clock.advance(0)
  client.cut()
  await createLease(admin, 'a')
  server.stop()
  server.start({ hasEmptyCache: true })
  client.heal('resume')
  await clock.advance(5_000)
  expect(changes).toEqual(['added a'])
  expect(facts).toEqual(['listed', 'watching', 'failed', 'watching', 'failed, will list', 'listed', 'watching'])
})

test('a watch from before a restore is silent, and the reflector lists again when it has waited long enough', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  await createLease(admin, 'a')
  const backup = server.backUp()
  const { changes, facts } = follow(sample, leasesPath)
  for (let number = 0; number < 5; number++) await createLease(admin, `lost-${number}`)
  await clock.advance(1_000)
  changes.length = 0
  server.restore(backup)
  await clock.advance(5_000)
  await createLease(admin, 'b')
  await clock.advance(100_000)
  expect(changes).toEqual([])
  await clock.advance(100_000)
  expect(changes).toContain('added b')
  expect(changes).toContain('deleted lost-0')
  expect(facts).toContain('failed, will list')
})

test('a watch of one Node by name hears of no other Node', async () => {
  const sample = sampleServer()
  const { clock, admin } = sample
  const { changes } = follow(sample, nodesPath, { fieldSelector: 'metadata.name=n1' })
  await clock.advance(0)
  await createNode(admin, 'n1')
  await createNode(admin, 'n2')
  const body = { metadata: { labels: { a: 'b' } } }
  for (const name of ['n1', 'n2']) await admin.json('PATCH', `${nodesPath}/${name}`, { body, contentType: merge })
  await clock.advance(0)
  expect(changes).toEqual(['added n1', 'modified n1'])
})

test('a page that nobody asks for is forgotten after five minutes', async () => {
  const { clock, admin } = sampleServer()
  for (const name of ['a', 'b']) await createLease(admin, name)
  const next = async (): Promise<string> => {
    const { metadata } = await admin.json<{ metadata: { continue: string } }>('GET', leasesPath, {
      query: { limit: 1 },
    })
    return metadata.continue
  }
  const [early, late] = [await next(), await next()]
  await clock.advance(299_999)
  await admin.json('GET', leasesPath, { query: { limit: 1, continue: early } })
  await clock.advance(1)
  const asked = admin.json('GET', leasesPath, { query: { limit: 1, continue: late } })
  await expect(asked).rejects.toMatchObject({ status: 410, reason: 'Expired' })
})

test('the pages of a list show one version, and a new list is needed once that is compacted', async () => {
  const { server, admin } = sampleServer()
  for (const name of ['a', 'b', 'c']) await createLease(admin, name)
  const list = async (): Promise<readonly string[]> => {
    const options = { pageSize: 1, transform: ({ metadata }: KubeObject) => metadata.name }
    return (await listAll<KubeObject, string>(admin, leasesPath, options)).items
  }
  expect(await list()).toEqual(['a', 'b', 'c'])
  const stopObserving = server.observe({
    answered({ verb }) {
      if (verb !== 'list') return
      stopObserving()
      server.handle({ client: 'x', manager: 'x', method: 'DELETE', path: `${leasesPath}/b`, query: {} })
    },
  })
  expect(await list()).toEqual(['a', 'b', 'c'])
  const stopCompacting = server.observe({
    answered({ verb }) {
      if (verb !== 'list') return
      stopCompacting()
      server.handle({ client: 'x', manager: 'x', method: 'DELETE', path: `${leasesPath}/c`, query: {} })
      server.compact()
    },
  })
  expect(await list()).toEqual(['a'])
})
