import { expect, test } from 'vitest'
import { type KubeObject, listAll } from '../../../src/kube/objects.ts'
import { type Reflector, type ReflectorFact, startReflector } from '../../../src/kube/reflector.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import type { Fault } from './faults.ts'
import type { RoutedRequest } from './request.ts'
import {
  createLease,
  createNode,
  eventsPath,
  leasesPath,
  merge,
  nodesPath,
  type Sample,
  sampleServer,
} from './sample-server.ts'
import type { SimClient } from './client.ts'

const isWatch = ({ verb }: RoutedRequest): boolean => verb === 'watch'

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

test('a watch of Events has no bookmarks, because kube-apiserver has no watch cache for them', async () => {
  const sample = sampleServer()
  const { reflector, facts } = follow(sample, eventsPath)
  await sample.clock.advance(170_000)
  expect(reflector.ageMs()).toBeGreaterThan(169_000)
  await sample.clock.advance(10_500)
  expect(facts).toEqual(['listed', 'watching', 'failed, will list'])
})

test.each<[string, Fault]>([
  ['ends in good order', { kind: 'cut-watch', afterMs: 2_000, how: 'end' }],
  ['breaks', { kind: 'cut-watch', afterMs: 2_000, how: 'break' }],
  ['ends inside an event', { kind: 'cut-watch', afterMs: 2_000, how: 'tear' }],
  ['ends with 410', { kind: 'expire-watch', afterMs: 2_000 }],
])('a reflector whose watch %s before its time lists again and misses nothing', async (_, fault) => {
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
  expect(facts).toEqual(['listed', 'watching', 'failed, will list', 'listed', 'watching'])
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
  expect(facts.filter((fact) => fact === 'listed')).toHaveLength(2)
})

test('a reflector that was refused a watch lists again where the server has forgotten its version', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  server.faults.rules = [{ name: 'overload', fault: { kind: 'refuse', code: 429 }, times: 1, matches: isWatch }]
  const { changes, facts } = follow(sample, leasesPath)
  await clock.advance(0)
  await createLease(admin, 'a')
  server.compact()
  await clock.advance(5_000)
  expect(changes).toEqual(['added a'])
  expect(facts).toEqual(['listed', 'failed', 'watching', 'failed, will list', 'listed', 'watching'])
})

/** Restores a backup, and makes so many changes before the reflector can have asked again. */
async function followRestore(lost: number, made: number): Promise<Followed> {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  await createLease(admin, 'a')
  const backup = server.backUp()
  const followed = follow(sample, leasesPath)
  await clock.advance(0)
  for (let number = 0; number < lost; number++) await createLease(admin, `lost-${number}`)
  await clock.advance(1_000)
  followed.changes.length = 0
  server.restore(backup)
  for (let number = 0; number < made; number++) await createLease(admin, `made-${number}`)
  await clock.advance(2_000)
  await createLease(admin, 'b')
  await clock.advance(0)
  return followed
}

test.each([0, 2, 5, 8])(
  'a reflector shows the restored objects two seconds after a restore that lost 5 changes, with %i new ones',
  async (made) => {
    const { reflector } = await followRestore(5, made)
    const names = Array.from({ length: made }, (_, number) => `made-${number}`)
    expect([...reflector.store.keys()].toSorted()).toEqual(['a', 'b', ...names])
  },
)

test('a reflector shows another object of the same version after a restore', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  const setLabel = async (value: string): Promise<unknown> =>
    await admin.json('PATCH', `${leasesPath}/a`, { body: { metadata: { labels: { is: value } } }, contentType: merge })
  await createLease(admin, 'a')
  const backup = server.backUp()
  const { reflector, changes } = follow(sample, leasesPath)
  await clock.advance(0)
  await setLabel('lost')
  await clock.advance(0)
  const lost = reflector.store.get('a')?.metadata
  server.restore(backup)
  await setLabel('kept')
  await clock.advance(2_000)
  expect(reflector.store.get('a')?.metadata).toEqual({ ...lost, labels: { is: 'kept' } })
  expect(changes).toEqual(['added a', 'modified a', 'modified a'])
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
