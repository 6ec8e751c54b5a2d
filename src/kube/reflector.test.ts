import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { startFakeApiServer, type FakeApiServer, type RecordedRequest } from '../../test/support/fake-api-server.ts'
import type { KubeObject } from './objects.ts'
import {
  startReflector,
  type ReflectorUpdate,
  type Reflector,
  type ReflectorFact,
  type ReflectorOptions,
} from './reflector.ts'
import type { KubeTransport } from './transport.ts'

const nodesPath = '/api/v1/nodes'

let server: FakeApiServer
let transport: KubeTransport
let abort: AbortController
let reflector: Reflector<KubeObject>
let updates: ReflectorUpdate<KubeObject>[]
let facts: ReflectorFact[]

beforeEach(async () => {
  server = await startFakeApiServer([nodesPath])
  transport = server.connect({ rate: false })
  abort = new AbortController()
  updates = []
  facts = []
  for (const name of ['a', 'b', 'c']) server.put(nodesPath, { metadata: { name } })
})

afterEach(async () => {
  abort.abort(new Error('test is over'))
  await reflector.ended
  transport.close()
  await server.stop()
})

function startTestReflector(options: Partial<ReflectorOptions<KubeObject>> = {}): Reflector<KubeObject> {
  reflector = startReflector<KubeObject>(transport, {
    clock: systemClock,
    random: systemRandom,
    path: nodesPath,
    onChange: (update) => updates.push(update),
    onFact: (fact) => facts.push(fact),
    signal: abort.signal,
    ...options,
    timing: { backoff: { initialMs: 5, maxMs: 5 }, idleTimeoutMs: 2_000, ...options.timing },
  })
  return reflector
}

const isList = ({ method, path, query }: RecordedRequest): boolean =>
  method === 'GET' && path === nodesPath && !query.has('watch')
const isWatch = ({ query }: RecordedRequest): boolean => query.has('watch')
const names = (): string[] => [...reflector.store.keys()].toSorted()
const listCount = (): number => server.requests.filter(isList).length
const watchCount = (): number => server.requests.filter(isWatch).length
const eventually = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 5_000, interval: 5 })
const untilWatching = async (): Promise<void> => await eventually(() => expect(server.openWatches()).toBe(1))

describe('what an earlier read has shown', () => {
  const initialOf = (...names: string[]) => ({
    items: names.map((name) => server.get(nodesPath, name) as unknown as KubeObject),
    resourceVersion: String(
      Math.max(...names.map((name) => Number(server.get(nodesPath, name)?.metadata['resourceVersion']))),
    ),
  })

  test('a reflector that starts from an earlier read watches without a LIST', async () => {
    startTestReflector({ initial: initialOf('a', 'b') })
    await reflector.synced
    expect(reflector.state()).toMatchObject({ state: 'synced' })
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c'])) // c is newer
    expect([listCount(), updates.flatMap(({ changes }) => changes.map(({ key }) => key))]).toEqual([0, ['c']])
  })

  test('a reflector lists when the version of the earlier read is forgotten', async () => {
    const initial = initialOf('a')
    server.compact()
    startTestReflector({ initial })
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c']))
    expect(listCount()).toBe(1)
  })
})

describe('following', () => {
  test('a reflector lists, then follows; its store is up to date when onChange is called', async () => {
    const sizes: number[] = []
    startTestReflector({ onChange: ({ changes }) => void sizes.push(reflector?.store.size ?? -1, changes.length) })
    await reflector.synced
    await untilWatching()
    expect(names()).toEqual(['a', 'b', 'c'])
    server.put(nodesPath, { metadata: { name: 'd' } })
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c', 'd']))
    server.remove(nodesPath, 'a')
    await eventually(() => expect(names()).toEqual(['b', 'c', 'd']))
    expect(sizes).toEqual([3, 3, 4, 1, 3, 1])
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('a reflector reads long lists in pages and asks for bookmarks', async () => {
    for (let i = 0; i < 20; i++) server.put(nodesPath, { metadata: { name: `n${i}` } })
    startTestReflector({ timing: { pageSize: 6 } })
    await reflector.synced
    await untilWatching()
    expect(reflector.store.size).toBe(23)
    expect(listCount()).toBe(4)
    expect(server.requests.find(isWatch)?.query.get('allowWatchBookmarks')).toBe('true')
    expect(Number(server.requests.find(isWatch)?.query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300)
  })

  test('a list whose pages expire half way is read again as a whole', async () => {
    server.fault(({ query }) => query.has('continue'), { kind: 'status', status: 410, reason: 'Expired' })
    startTestReflector({ timing: { pageSize: 2 } })
    await reflector.synced
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(facts).toEqual([{ fact: 'listed', count: 3 }])
  })

  test('the store holds no managedFields, no more than metadata if asked, and nothing that transform leaves out', async () => {
    server.put(nodesPath, {
      metadata: { name: 'd', managedFields: [{ manager: 'x' }], labels: { l: '1' } },
      spec: { big: true },
    })
    startTestReflector({
      metadataOnly: true,
      transform: ({ metadata: { name, uid, resourceVersion } }) => ({ metadata: { name, uid, resourceVersion } }),
    })
    await reflector.synced
    expect(Object.keys(reflector.store.get('d')?.metadata ?? {})).toEqual(['name', 'uid', 'resourceVersion'])
    await untilWatching()
    expect(server.requests.find(isList)?.headers.accept).toContain('as=PartialObjectMetadataList;')
    expect(server.requests.find(isWatch)?.headers.accept).toContain('as=PartialObjectMetadata;')
    server.put(nodesPath, { metadata: { name: 'e', managedFields: [] }, spec: {} })
    await eventually(() => expect(reflector.store.get('e')).toBeDefined())
    expect(reflector.store.get('e')).not.toHaveProperty('spec')
  })

  test('a field selector follows one object by its name', async () => {
    startTestReflector({ query: { fieldSelector: 'metadata.name=b' } })
    await reflector.synced
    await untilWatching()
    server.put(nodesPath, { metadata: { name: 'a', labels: { not: 'ours' } } })
    server.put(nodesPath, { metadata: { name: 'b', labels: { is: 'ours' } } })
    await eventually(() => expect(reflector.store.get('b')?.metadata.labels).toEqual({ is: 'ours' }))
    expect(names()).toEqual(['b'])
  })

  test('objects of all namespaces are kept apart, and those of one namespace are known by name', async () => {
    server.put('/api/v1/pods', { metadata: { name: 'p', namespace: 'x' } })
    startTestReflector({ path: '/api/v1/pods' })
    await reflector.synced
    expect(names()).toEqual(['x/p'])
  })

  test('a watch that the server ends in time continues from a bookmark, without a list', async () => {
    startTestReflector({ timing: { minWatchTimeoutSeconds: 1 } })
    await untilWatching()
    server.bookmark()
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const bookmarked = server.get(nodesPath, 'c')?.metadata.resourceVersion
    server.endWatches('end')
    await untilWatching()
    expect(listCount()).toBe(1)
    expect(server.requests.filter(isWatch).at(-1)?.query.get('resourceVersion')).toBe(bookmarked)
    expect(facts.filter(({ fact }) => fact === 'failed')).toEqual([])
  })

  test('the age of the store counts from the last proof of life', async () => {
    startTestReflector()
    expect(reflector.ageMs()).toBe(Infinity)
    await untilWatching()
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(reflector.ageMs()).toBeGreaterThan(50)
    server.bookmark()
    await eventually(() => expect(reflector.ageMs()).toBeLessThan(50))
  })
})

describe('broken watches', () => {
  test.each(['event', 'status'] as const)(
    'a 410 as %s causes a list that reports what vanished unseen',
    async (how) => {
      startTestReflector()
      await untilWatching()
      server.fault(isWatch, { kind: 'slow', ms: 50 }, 1)
      server.endWatches('destroy')
      server.remove(nodesPath, 'b')
      server.put(nodesPath, { metadata: { name: 'd' } })
      server.compact(how)
      await eventually(() => expect(names()).toEqual(['a', 'c', 'd']))
      expect(listCount()).toBe(2)
      expect(updates.at(-1)?.changes.map(({ type, key }) => `${type} ${key}`)).toEqual(['deleted b', 'added d'])
    },
  )

  test.each(['destroy', 'end'] as const)(
    'a reflector lists again after a watch that was lost by %s before its time',
    async (how) => {
      startTestReflector()
      await untilWatching()
      server.endWatches(how)
      await eventually(() => expect(listCount()).toBe(2))
      await untilWatching()
      expect(facts.find(({ fact }) => fact === 'failed')).toMatchObject({ during: 'watch', willRelist: true })
      expect(updates.flatMap(({ changes }) => changes)).toHaveLength(3)
      expect(reflector.state()).not.toHaveProperty('lastError')
    },
  )

  test('while the API server is away the store stays synced, with the error', async () => {
    startTestReflector()
    await untilWatching()
    server.fault(isList, { kind: 'status', status: 500 }, 3)
    await server.stop()
    await eventually(() => expect(reflector.state()).toHaveProperty('lastError'))
    server.put(nodesPath, { metadata: { name: 'd' } })
    await server.start()
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c', 'd']))
    expect(new Set(updates.map(({ state: { state } }) => state))).toEqual(new Set(['synced']))
    await eventually(() => expect(reflector.state()).not.toHaveProperty('lastError'))
  })

  test('a reflector that is asked to ends a watch that shows nothing, and lists', async () => {
    server.fault(isWatch, { kind: 'stream', text: '', after: 'hold' })
    startTestReflector({ timing: { idleTimeoutMs: 60_000 } })
    await eventually(() => expect(facts.at(-1)).toEqual({ fact: 'watching' }))
    server.put(nodesPath, { metadata: { name: 'd' } })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(names()).toEqual(['a', 'b', 'c'])
    reflector.relist()
    reflector.relist()
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c', 'd']))
    await untilWatching()
    reflector.relist()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect([listCount(), watchCount()]).toEqual([2, 2])
  })

  test('a watch that is refused for now continues from the last version, without a list', async () => {
    server.fault(isWatch, { kind: 'status', status: 429 }, 3)
    startTestReflector()
    await untilWatching()
    expect(listCount()).toBe(1)
  })

  test('a reflector that asks for it lists also after a watch that is refused for now', async () => {
    server.fault(isWatch, { kind: 'status', status: 429 }, 3)
    startTestReflector({ relistsAfterOverload: true })
    await untilWatching()
    expect(listCount()).toBe(4)
  })

  test('Retry-After takes precedence over the backoff', async () => {
    server.fault(isWatch, { kind: 'status', status: 429, retryAfterSeconds: 1 })
    startTestReflector()
    await untilWatching()
    expect(facts.find(({ fact }) => fact === 'failed')).toMatchObject({ retryInMs: 1000, willRelist: false })
  })

  test('an event cut in the middle breaks the stream, and what came before it counts', async () => {
    startTestReflector()
    await untilWatching()
    server.fault(isWatch, { kind: 'stream', text: '{"type":"DELETED","object":{"metadata":{"na', after: 'end' })
    server.endWatches('destroy')
    await untilWatching()
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(facts.some((fact) => fact.fact === 'failed' && String(fact.error).includes('inside an event'))).toBe(true)
  })

  test('a watch that closes at once counts as a failure and causes no hot loop', async () => {
    server.fault(isWatch, { kind: 'stream', text: '', after: 'end' }, 5)
    startTestReflector()
    await untilWatching()
    expect(facts.filter(({ fact }) => fact === 'failed')).toHaveLength(5)
  })

  test('a watch that closes right after an event counts as a failure, too', async () => {
    const event = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '999' } } }
    server.fault(isWatch, { kind: 'stream', text: `${JSON.stringify(event)}\n`, after: 'end' }, 1_000)
    startTestReflector()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(server.requests.filter(isWatch).length).toBeLessThan(60) // a backoff of 5 ms
  })

  test('a silent watch causes a list', async () => {
    server.fault(isWatch, { kind: 'stream', text: '\n', after: 'hold' })
    startTestReflector({ timing: { idleTimeoutMs: 50 } })
    await untilWatching()
    expect(listCount()).toBe(2)
    expect(facts.find(({ fact }) => fact === 'failed')).toMatchObject({ during: 'watch', willRelist: true })
  })

  test('a reflector waits for a slow server', async () => {
    server.fault(() => true, { kind: 'slow', ms: 100 }, 2)
    startTestReflector()
    await untilWatching()
    expect(facts.filter(({ fact }) => fact === 'failed')).toEqual([])
  })

  test('an object deleted and created again in the gap is reported as both', async () => {
    startTestReflector()
    await untilWatching()
    await server.stop()
    server.remove(nodesPath, 'a')
    server.put(nodesPath, { metadata: { name: 'a' } })
    server.compact()
    await server.start()
    await eventually(() =>
      expect(updates.at(-1)?.changes.map(({ type, key }) => `${type} ${key}`)).toEqual(['deleted a', 'added a']),
    )
  })
})

describe('unknown states', () => {
  test.each([403, 500, 503])(
    'a first list answered with %i leaves the state unknown, with the reason, and reports nothing as deleted',
    async (status) => {
      server.fault(isList, { kind: 'status', status, message: 'no' }, 3)
      startTestReflector()
      await eventually(() =>
        expect(reflector.state()).toMatchObject({ state: 'unknown', lastError: { error: { status, message: 'no' } } }),
      )
      await reflector.synced
      expect(updates.map(({ state: { state }, changes }) => [state, changes.length])).toEqual([
        ['unknown', 0],
        ['synced', 3],
      ])
    },
  )

  test('a due list that fails turns synced into unknown and keeps the store', async () => {
    startTestReflector()
    await untilWatching()
    server.compact()
    server.fault(isList, { kind: 'status', status: 403 }, 1000)
    server.endWatches('destroy')
    await eventually(() => expect(reflector.state().state).toBe('unknown'))
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(updates.every(({ changes }) => changes.every(({ type }) => type !== 'deleted'))).toBe(true)
  })

  test('a kind that the server does not serve is absent after two 404s, empties the store, and comes back', async () => {
    startTestReflector()
    await untilWatching()
    server.unserve(nodesPath)
    server.endWatches('destroy')
    await eventually(() => expect(reflector.state()).toMatchObject({ state: 'absent' }))
    expect(names()).toEqual([])
    expect(updates.map(({ state: { state }, changes }) => `${state} ${changes.length}`)).toEqual([
      'synced 3',
      'synced 0',
      'unknown 0',
      'absent 3',
    ])
    server.serve(nodesPath)
    await eventually(() => expect(names()).toEqual(['a', 'b', 'c']))
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('one 404 of a server that is just starting leaves the store alone', async () => {
    startTestReflector()
    await untilWatching()
    server.compact()
    server.fault(isList, { kind: 'status', status: 404, reason: 'NotFound' }, 1)
    server.endWatches('destroy')
    await eventually(() => expect(listCount()).toBe(3))
    await untilWatching()
    expect(updates.some(({ state: { state } }) => state === 'absent')).toBe(false)
    expect(names()).toEqual(['a', 'b', 'c'])
  })

  test('a reflector whose watch alone is forbidden polls, and says that it sees no changes', async () => {
    server.fault(isWatch, { kind: 'status', status: 403, message: 'no watch' }, 1000)
    startTestReflector()
    await reflector.synced
    await eventually(() =>
      expect(reflector.state()).toMatchObject({ state: 'synced', lastError: { error: { message: 'no watch' } } }),
    )
    server.put(nodesPath, { metadata: { name: 'd' } })
    await eventually(() => expect(names()).toContain('d'))
    // the list that brought it may have come before the second
    await eventually(() => expect(watchCount()).toBeGreaterThan(1))
  })
})

describe('stopping', () => {
  test('an abort closes the watch and ends the loop', async () => {
    startTestReflector()
    await untilWatching()
    abort.abort(new Error('bye'))
    await reflector.ended
    await eventually(() => expect(server.openWatches()).toBe(0))
  })

  test('an abort before the first list rejects synced', async () => {
    server.fault(isList, { kind: 'silent' })
    startTestReflector()
    abort.abort(new Error('bye'))
    await expect(reflector.synced).rejects.toThrow('bye')
  })

  test('a consumer that throws ends the reflector and is not retried', async () => {
    startTestReflector({
      onChange: () => {
        throw new Error('a bug')
      },
    })
    await expect(reflector.ended).rejects.toThrow('a bug')
    expect(listCount()).toBe(1)
    reflector = { ...reflector, ended: Promise.resolve() }
  })
})
