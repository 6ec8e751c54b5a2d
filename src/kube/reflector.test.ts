import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer, type SeenRequest } from '../../test/support/fake-api-server.ts'
import { staticCredentials } from './credentials.ts'
import type { KubeObject } from './objects.ts'
import { startReflector, type Notice, type Reflector, type ReflectorFact, type ReflectorOptions } from './reflector.ts'
import { createTransport, type Transport } from './transport.ts'

const NODES = '/api/v1/nodes'

let server: FakeApiServer
let transport: Transport
let abort: AbortController
let reflector: Reflector<KubeObject>
let notices: Notice<KubeObject>[]
let facts: ReflectorFact[]

beforeEach(async () => {
  server = await startFakeApiServer([NODES])
  transport = createTransport({ credentials: staticCredentials({ server: server.url }), version: 'test', rate: false })
  abort = new AbortController()
  notices = []
  facts = []
  for (const name of ['a', 'b', 'c']) server.put(NODES, { metadata: { name } })
})

afterEach(async () => {
  abort.abort(new Error('test is over'))
  await reflector.ended
  transport.close()
  await server.stop()
})

function reflect(options: Partial<ReflectorOptions<KubeObject>> = {}): Reflector<KubeObject> {
  reflector = startReflector<KubeObject>(transport, {
    path: NODES,
    onChange: (notice) => notices.push(notice),
    onFact: (fact) => facts.push(fact),
    signal: abort.signal,
    ...options,
    timing: { backoff: () => 5, idleMs: 2_000, ...options.timing },
  })
  return reflector
}

const isList = ({ method, path, query }: SeenRequest): boolean => method === 'GET' && path === NODES && !query.has('watch')
const isWatch = ({ query }: SeenRequest): boolean => query.has('watch')
const names = (): string[] => [...reflector.store.keys()].toSorted()
const lists = (): number => server.requests.filter(isList).length
const watches = (): number => server.requests.filter(isWatch).length
const eventually = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 5_000, interval: 5 })
const watching = async (): Promise<void> => await eventually(() => expect(server.openWatches()).toBe(1))

describe('in good weather', () => {
  test('lists, then follows; the store is up to date when onChange is called', async () => {
    const sizes: number[] = []
    reflect({ onChange: ({ changes }) => void sizes.push(reflector?.store.size ?? -1, changes.length) })
    await reflector.synced
    await watching()
    expect(names()).toEqual(['a', 'b', 'c'])
    server.put(NODES, { metadata: { name: 'd' } })
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c', 'd']))
    server.remove(NODES, 'a')
    await eventually(() => expect(names()).toEqual(['b', 'c', 'd']))
    expect(sizes).toEqual([3, 3, 4, 1, 3, 1])
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('pages through long lists and asks for bookmarks', async () => {
    for (let i = 0; i < 20; i++) server.put(NODES, { metadata: { name: `n${i}` } })
    reflect({ timing: { pageSize: 6 } })
    await reflector.synced
    await watching()
    expect(reflector.store.size).toBe(23)
    expect(lists()).toBe(4)
    expect(server.requests.find(isWatch)?.query.get('allowWatchBookmarks')).toBe('true')
    expect(Number(server.requests.find(isWatch)?.query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300)
  })

  test('a list whose pages expire half way is read whole', async () => {
    server.fault(({ query }) => query.has('continue'), { kind: 'status', status: 410, reason: 'Expired' })
    reflect({ timing: { pageSize: 2 } })
    await reflector.synced
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(facts).toEqual([{ fact: 'listed', count: 3 }])
  })

  test('metadata only, managedFields left out, and what keep leaves out', async () => {
    server.put(NODES, { metadata: { name: 'd', managedFields: [{ manager: 'x' }], labels: { l: '1' } }, spec: { big: true } })
    reflect({ metadataOnly: true, keep: ({ metadata: { name, uid, resourceVersion } }) => ({ metadata: { name, uid, resourceVersion } }) })
    await reflector.synced
    expect(Object.keys(reflector.store.get('d')?.metadata ?? {})).toEqual(['name', 'uid', 'resourceVersion'])
    await watching()
    expect(server.requests.find(isList)?.headers.accept).toContain('as=PartialObjectMetadataList;')
    expect(server.requests.find(isWatch)?.headers.accept).toContain('as=PartialObjectMetadata;')
    server.put(NODES, { metadata: { name: 'e', managedFields: [] }, spec: {} })
    await eventually(() => expect(reflector.store.get('e')).toBeDefined())
    expect(reflector.store.get('e')).not.toHaveProperty('spec')
  })

  test('follows one object by name', async () => {
    reflect({ query: { fieldSelector: 'metadata.name=b' } })
    await reflector.synced
    await watching()
    server.put(NODES, { metadata: { name: 'a', labels: { not: 'ours' } } })
    server.put(NODES, { metadata: { name: 'b', labels: { is: 'ours' } } })
    await eventually(() => expect(reflector.store.get('b')?.metadata.labels).toEqual({ is: 'ours' }))
    expect(names()).toEqual(['b'])
  })

  test('objects of all namespaces are kept apart, those of one are known by name', async () => {
    server.put('/api/v1/pods', { metadata: { name: 'p', namespace: 'x' } })
    reflect({ path: '/api/v1/pods' })
    await reflector.synced
    expect(names()).toEqual(['x/p'])
  })

  test('a watch that the server ends in good order goes on from a bookmark, without a list', async () => {
    reflect()
    await watching()
    server.bookmark()
    await new Promise((resolve) => setTimeout(resolve, 1_100)) // shorter lives count as failures
    const bookmarked = server.get(NODES, 'c')?.metadata.resourceVersion
    server.endWatches('end')
    await watching()
    expect(lists()).toBe(1)
    expect(server.requests.filter(isWatch).at(-1)?.query.get('resourceVersion')).toBe(bookmarked)
    expect(facts.filter(({ fact }) => fact === 'failed')).toEqual([])
  })

  test('age counts from the last proof of life', async () => {
    reflect()
    expect(reflector.ageMs()).toBe(Infinity)
    await watching()
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(reflector.ageMs()).toBeGreaterThan(50)
    server.bookmark()
    await eventually(() => expect(reflector.ageMs()).toBeLessThan(50))
  })
})

describe('when the watch breaks', () => {
  test.each(['event', 'status'] as const)('410 as %s: lists again and tells what vanished unseen', async (how) => {
    reflect()
    await watching()
    server.fault(isWatch, { kind: 'slow', ms: 50 }, 1)
    server.endWatches('destroy')
    server.remove(NODES, 'b')
    server.put(NODES, { metadata: { name: 'd' } })
    server.compact(how)
    await eventually(() => expect(names()).toEqual(['a', 'c', 'd']))
    expect(lists()).toBe(2)
    expect(notices.at(-1)?.changes.map(({ type, key }) => `${type} ${key}`)).toEqual(['deleted b', 'added d'])
  })

  test('500s and a refused connection: goes on from the last version without a list', async () => {
    reflect()
    await watching()
    server.fault(isWatch, { kind: 'status', status: 500 }, 3)
    server.endWatches('destroy')
    await watching()
    await server.stop()
    await eventually(() => expect(reflector.state()).toHaveProperty('trouble'))
    server.put(NODES, { metadata: { name: 'd' } })
    await server.start()
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c', 'd']))
    expect(lists()).toBe(1)
    expect(reflector.state()).not.toHaveProperty('trouble')
  })

  test('Retry-After wins over the backoff', async () => {
    server.fault(isWatch, { kind: 'status', status: 429, retryAfterSeconds: 1 })
    reflect()
    await watching()
    expect(facts.find(({ fact }) => fact === 'failed')).toMatchObject({ retryInMs: 1000, relists: false })
  })

  test('an event cut in the middle is a broken stream, what came before it counts', async () => {
    reflect()
    await watching()
    server.fault(isWatch, { kind: 'stream', text: '{"type":"DELETED","object":{"metadata":{"na', after: 'end' })
    server.endWatches('destroy')
    await watching()
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(facts.some((fact) => fact.fact === 'failed' && String(fact.error).includes('inside an event'))).toBe(true)
  })

  test('a watch closed at once is a failure and not a hot loop', async () => {
    server.fault(isWatch, { kind: 'stream', text: '', after: 'end' }, 5)
    reflect()
    await watching()
    expect(facts.filter(({ fact }) => fact === 'failed')).toHaveLength(5)
  })

  test('silence: the watchdog lists again, for a restored server would never send the versions we wait for', async () => {
    server.fault(isWatch, { kind: 'stream', text: '\n', after: 'hold' })
    reflect({ timing: { idleMs: 50 } })
    await watching()
    expect(lists()).toBe(2)
    expect(facts.find(({ fact }) => fact === 'failed')).toMatchObject({ during: 'watch', relists: true })
  })

  test('a slow server is waited for', async () => {
    server.fault(() => true, { kind: 'slow', ms: 100 }, 2)
    reflect()
    await watching()
    expect(facts.filter(({ fact }) => fact === 'failed')).toEqual([])
  })

  test('an object that was deleted and created again in the gap is told as both', async () => {
    reflect()
    await watching()
    await server.stop()
    server.remove(NODES, 'a')
    server.put(NODES, { metadata: { name: 'a' } })
    server.compact()
    await server.start()
    await eventually(() => expect(notices.at(-1)?.changes.map(({ type, key }) => `${type} ${key}`)).toEqual(['deleted a', 'added a']))
  })
})

describe('unknown is not empty', () => {
  test.each([403, 500, 503])(
    'a first list answered with %i leaves the state unknown, with the reason, and nothing is told as deleted',
    async (status) => {
      server.fault(isList, { kind: 'status', status, message: 'no' }, 3)
      reflect()
      await eventually(() => expect(reflector.state()).toMatchObject({ state: 'unknown', trouble: { error: { status, message: 'no' } } }))
      await reflector.synced
      expect(notices.map(({ state: { state }, changes }) => [state, changes.length])).toEqual([
        ['unknown', 0],
        ['synced', 3],
      ])
    },
  )

  test('a needed list that fails turns synced into unknown and keeps what was known', async () => {
    reflect()
    await watching()
    server.compact()
    server.fault(isList, { kind: 'status', status: 403 }, 1000)
    server.endWatches('destroy')
    await eventually(() => expect(reflector.state().state).toBe('unknown'))
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(notices.every(({ changes }) => changes.every(({ type }) => type !== 'deleted'))).toBe(true)
  })

  test('a kind that is not served is absent, after two witnesses, and the store is told empty; it comes back', async () => {
    reflect()
    await watching()
    server.unserve(NODES)
    server.endWatches('destroy')
    await eventually(() => expect(reflector.state()).toMatchObject({ state: 'absent' }))
    expect(names()).toEqual([])
    expect(notices.map(({ state: { state }, changes }) => `${state} ${changes.length}`)).toEqual([
      'synced 3',
      'synced 0',
      'unknown 0',
      'absent 3',
    ])
    server.serve(NODES)
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c']))
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('one stray 404 of a server that is just starting empties nothing', async () => {
    reflect()
    await watching()
    server.compact()
    server.fault(isList, { kind: 'status', status: 404, reason: 'NotFound' }, 1)
    server.endWatches('destroy')
    await eventually(() => expect(lists()).toBe(3))
    await watching()
    expect(notices.some(({ state: { state } }) => state === 'absent')).toBe(false)
    expect(names()).toEqual(['a', 'b', 'c'])
  })

  test('a watch that is forbidden although the list is not: polls, and says that it sees no changes', async () => {
    server.fault(isWatch, { kind: 'status', status: 403, message: 'no watch' }, 1000)
    reflect()
    await reflector.synced
    await eventually(() => expect(reflector.state()).toMatchObject({ state: 'synced', trouble: { error: { message: 'no watch' } } }))
    server.put(NODES, { metadata: { name: 'd' } })
    await eventually(() => expect(names()).toContain('d'))
    await eventually(() => expect(watches()).toBeGreaterThan(1)) // the list that brought it may have come before the second
  })
})

describe('the end', () => {
  test('abort closes the watch and ends the loop', async () => {
    reflect()
    await watching()
    abort.abort(new Error('bye'))
    await reflector.ended
    await eventually(() => expect(server.openWatches()).toBe(0))
  })

  test('abort before the first list rejects synced', async () => {
    server.fault(isList, { kind: 'silent' })
    reflect()
    abort.abort(new Error('bye'))
    await expect(reflector.synced).rejects.toThrow('bye')
  })

  test('a consumer that throws ends it instead of being retried', async () => {
    reflect({
      onChange: () => {
        throw new Error('a bug')
      },
    })
    await expect(reflector.ended).rejects.toThrow('a bug')
    expect(lists()).toBe(1)
    reflector = { ...reflector, ended: Promise.resolve() }
  })
})
