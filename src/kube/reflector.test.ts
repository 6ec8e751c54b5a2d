import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SimClient } from '../../test/kit/api-server/client.ts'
import type { Fault } from '../../test/kit/api-server/faults.ts'
import type { RoutedRequest } from '../../test/kit/api-server/request.ts'
import {
  createLease,
  createNode,
  createPod,
  merge,
  nodesPath,
  type Sample,
  sampleServer,
} from '../../test/kit/api-server/sample-server.ts'
import {
  type RecordedClient,
  recordClient,
  type SentRequest,
  silence,
} from '../../test/kit/api-server/sent-requests.ts'
import type { SimStream } from '../../test/kit/api-server/stream.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import type { KubeObject } from './objects.ts'
import {
  startReflector,
  type ReflectorUpdate,
  type Reflector,
  type ReflectorFact,
  type ReflectorOptions,
} from './reflector.ts'
import type { KubeTransport } from './transport.ts'

let sample: Sample
let client: SimClient
let recorded: RecordedClient
let onWatch: (watch: SimStream) => void
let abort: AbortController
let reflector: Reflector<KubeObject>
let updates: ReflectorUpdate<KubeObject>[]
let facts: ReflectorFact[]

beforeEach(async () => {
  sample = sampleServer()
  client = sample.connect()
  onWatch = () => {}
  recorded = recordClient(client, (watch) => onWatch(watch))
  abort = new AbortController()
  updates = []
  facts = []
  for (const name of ['a', 'b', 'c']) await createNode(sample.admin, name)
})

afterEach(async () => {
  abort.abort(new Error('test is over'))
  await reflector.ended
})

function startTestReflector(options: Partial<ReflectorOptions<KubeObject>> = {}): Reflector<KubeObject> {
  reflector = startReflector<KubeObject>(recorded.transport, {
    clock: sample.clock,
    random: createSeededRandom(1),
    path: nodesPath,
    onChange: (update) => updates.push(update),
    onFact: (fact) => facts.push(fact),
    signal: abort.signal,
    ...options,
    timing: { backoff: { initialMs: 5, maxMs: 5 }, ...options.timing },
  })
  return reflector
}

const isWatch = ({ query }: SentRequest): boolean => query?.['watch'] !== undefined
const lists = (): SentRequest[] => recorded.sent.filter((request) => !isWatch(request))
const watches = (): SentRequest[] => recorded.sent.filter(isWatch)
const names = (): string[] => [...reflector.store.keys()].toSorted()
const changesOf = (update: ReflectorUpdate<KubeObject> | undefined): string[] | undefined =>
  update?.changes.map(({ type, key }) => `${type} ${key}`)
const failures = () => facts.filter((fact) => fact.fact === 'failed')
const remove = async (name: string): Promise<void> => void (await sample.admin.json('DELETE', `${nodesPath}/${name}`))
const label = async (name: string, labels: Record<string, string>): Promise<void> =>
  void (await sample.admin.json('PATCH', `${nodesPath}/${name}`, {
    body: { metadata: { labels } },
    contentType: merge,
  }))
/** The agent's requests of this verb meet a fault; `times`: so often. */
const addFault = (verb: 'list' | 'watch', fault: Fault, times = 1): void =>
  void sample.server.faults.rules.push({
    name: `${verb} ${fault.kind}`,
    fault,
    matches: ({ client, verb: of }: RoutedRequest) => client === 'agent' && of === verb,
    times,
  })
const refused = (
  code: number,
  more: { reason?: string; message?: string; retryAfterSeconds?: number } = {},
): Fault => ({
  kind: 'refuse',
  code,
  ...more,
})
/** Each wait of a reflector after a failure is at most 5 ms here. */
const afterBackoff = async (): Promise<void> => await sample.clock.advance(10)
/** Nothing takes time but what a test says: until everybody waits for the server or the clock. */
const atOnce = async (): Promise<void> => await sample.clock.advance(0)
function breakWatch(): void {
  recorded.watches.at(-1)?.fail(new Error('read ECONNRESET'))
}

describe('what an earlier read has shown', () => {
  const initialOf = (...names: string[]) => {
    const items = names.map((name) => sample.server.object('nodes', undefined, name) as KubeObject)
    const versions = items.map(({ metadata }) => Number(metadata.resourceVersion))
    return { items: items.map((item) => structuredClone(item)), resourceVersion: String(Math.max(...versions)) }
  }

  test('a reflector that starts from an earlier read watches without a LIST', async () => {
    startTestReflector({ initial: initialOf('a', 'b') })
    await reflector.synced
    expect(reflector.state()).toMatchObject({ state: 'synced' })
    await atOnce()
    expect(names()).toEqual(['a', 'b', 'c']) // c is newer
    expect([lists(), updates.flatMap(({ changes }) => changes.map(({ key }) => key))]).toEqual([[], ['c']])
  })

  test.each<[string, () => void]>([
    ['an event', () => sample.server.compact()],
    ['a status', () => addFault('watch', refused(410, { reason: 'Expired' }))],
  ])('a 410 as %s causes a list that reports what vanished unseen', async (_, forget) => {
    const initial = initialOf('a', 'b', 'c')
    await remove('b')
    await createNode(sample.admin, 'd')
    forget()
    startTestReflector({ initial })
    await afterBackoff()
    expect(names()).toEqual(['a', 'c', 'd'])
    expect(lists()).toHaveLength(1)
    expect(changesOf(updates.at(-1))).toEqual(['deleted b', 'added d'])
  })
})

describe('following', () => {
  test('a reflector lists, then follows; its store is up to date when onChange is called', async () => {
    const sizes: number[] = []
    startTestReflector({ onChange: ({ changes }) => void sizes.push(reflector?.store.size ?? -1, changes.length) })
    await reflector.synced
    await atOnce()
    expect(names()).toEqual(['a', 'b', 'c'])
    await createNode(sample.admin, 'd')
    await atOnce()
    expect(names()).toEqual(['a', 'b', 'c', 'd'])
    await remove('a')
    await atOnce()
    expect(names()).toEqual(['b', 'c', 'd'])
    expect(sizes).toEqual([3, 3, 4, 1, 3, 1])
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('a reflector reads long lists in pages and asks for bookmarks', async () => {
    for (let i = 0; i < 20; i++) await createNode(sample.admin, `n${i}`)
    startTestReflector({ timing: { pageSize: 6 } })
    await reflector.synced
    await atOnce()
    expect(reflector.store.size).toBe(23)
    expect(lists()).toHaveLength(4)
    const [watch] = watches()
    expect(String(watch?.query?.['allowWatchBookmarks'])).toBe('true')
    expect(Number(watch?.query?.['timeoutSeconds'])).toBeGreaterThanOrEqual(300)
  })

  test('a list whose pages expire half way is read again as a whole', async () => {
    sample.server.faults.rules.push({
      name: 'expired',
      fault: refused(410, { reason: 'Expired' }),
      matches: ({ query }) => query['continue'] !== undefined,
      times: 1,
    })
    startTestReflector({ timing: { pageSize: 2 } })
    await reflector.synced
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(facts).toEqual([{ fact: 'listed', count: 3 }])
  })

  test('the store holds no managedFields, no more than metadata if asked, and nothing that transform leaves out', async () => {
    const managedFields = [{ manager: 'x' }]
    const withManagedFields = (object: KubeObject) => ({ ...object, metadata: { ...object.metadata, managedFields } })
    const { transport: inner } = recorded
    const transport: KubeTransport = {
      ...inner,
      async json<T>(...parameters: Parameters<KubeTransport['json']>) {
        const list = await inner.json<{ items: KubeObject[] }>(...parameters)
        return { ...list, items: list.items.map(withManagedFields) } as T
      },
    }
    recorded = { ...recorded, transport }
    startTestReflector({
      metadataOnly: true,
      transform({ metadata }) {
        const kept = { ...metadata }
        delete (kept as { labels?: unknown }).labels
        return { metadata: kept }
      },
    })
    await reflector.synced
    await atOnce()
    const ofStore = (name: string): string[] => Object.keys(reflector.store.get(name)?.metadata ?? {})
    expect(ofStore('a')).toContain('resourceVersion')
    expect(ofStore('a')).not.toContain('managedFields')
    expect(lists()[0]?.accept).toContain('as=PartialObjectMetadataList;')
    expect(watches()[0]?.accept).toContain('as=PartialObjectMetadata;')
    await sample.admin.json('POST', nodesPath, {
      body: { metadata: { name: 'd', labels: { l: '1' } }, spec: { podCIDR: 'x' } },
    })
    const e = sample.server.object('nodes', undefined, 'd') as KubeObject
    const object = withManagedFields({ metadata: { ...e.metadata, name: 'e', uid: 'e' } })
    recorded.watches[0]?.write(Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`))
    await atOnce()
    expect(reflector.store.get('d')).not.toHaveProperty('spec')
    expect(ofStore('d')).not.toContain('labels')
    expect(ofStore('e')).toContain('resourceVersion')
    expect(ofStore('e')).not.toContain('managedFields')
  })

  test('a field selector follows one object by its name', async () => {
    startTestReflector({ query: { fieldSelector: 'metadata.name=b' } })
    await reflector.synced
    await atOnce()
    await label('a', { not: 'ours' })
    await label('b', { is: 'ours' })
    await atOnce()
    expect(reflector.store.get('b')?.metadata.labels).toMatchObject({ is: 'ours' })
    expect(names()).toEqual(['b'])
  })

  test('objects of all namespaces are kept apart, and those of one namespace are known by name', async () => {
    await createPod(sample.admin, 'p')
    startTestReflector({ path: '/api/v1/pods' })
    await reflector.synced
    expect(names()).toEqual(['default/p'])
  })

  test('a watch that the server ends in time continues from a bookmark, without a list', async () => {
    startTestReflector()
    await atOnce()
    await createLease(sample.admin, 'other') // a later version than that of any Node
    const bookmarked = String(sample.server.revision())
    await sample.clock.advance(Number(watches()[0]?.query?.['timeoutSeconds']) * 1_000)
    expect(lists()).toHaveLength(1)
    expect(watches().map(({ query }) => query?.['resourceVersion'])).toEqual([expect.any(String), bookmarked])
    expect(failures()).toEqual([])
  })

  test('the age of the store counts from the last proof of life', async () => {
    startTestReflector()
    expect(reflector.ageMs()).toBe(Infinity)
    await atOnce()
    await sample.clock.advance(59_000)
    expect(reflector.ageMs()).toBe(59_000)
    await sample.clock.advance(2_000) // a bookmark in each minute
    expect(reflector.ageMs()).toBe(1_000)
  })
})

describe('broken watches', () => {
  test.each<[string, (watch: SimStream) => void]>([
    ['a broken connection', (watch) => watch.fail(new Error('read ECONNRESET'))],
    ['an end in good order', (watch) => watch.end()],
  ])('a reflector lists again after a watch that was lost by %s before its time', async (_, lose) => {
    startTestReflector()
    await atOnce()
    lose(recorded.watches[0] as SimStream)
    await afterBackoff()
    expect([lists().length, sample.server.openWatches()]).toEqual([2, 1])
    expect(failures()).toMatchObject([{ during: 'watch', willRelist: true }])
    expect(updates.flatMap(({ changes }) => changes)).toHaveLength(3)
    expect(reflector.state()).not.toHaveProperty('lastError')
  })

  test('while the API server is away the store stays synced, with the error', async () => {
    startTestReflector()
    await atOnce()
    addFault('list', refused(500), 3)
    sample.server.stop()
    await afterBackoff()
    expect(reflector.state()).toHaveProperty('lastError')
    sample.server.start()
    await createNode(sample.admin, 'd')
    await sample.clock.advance(30)
    expect(names()).toEqual(['a', 'b', 'c', 'd'])
    expect(new Set(updates.map(({ state: { state } }) => state))).toEqual(new Set(['synced']))
    expect(reflector.state()).not.toHaveProperty('lastError')
  })

  test('a reflector that is asked to ends a watch that shows nothing, and lists', async () => {
    onWatch = (watch) => {
      if (recorded.watches.length === 1) silence(watch)
    }
    startTestReflector()
    await atOnce()
    expect(facts.at(-1)).toEqual({ fact: 'watching' })
    await createNode(sample.admin, 'd')
    await sample.clock.advance(60_000)
    expect(names()).toEqual(['a', 'b', 'c'])
    reflector.relist()
    reflector.relist()
    await afterBackoff()
    expect(names()).toEqual(['a', 'b', 'c', 'd'])
    expect(sample.server.openWatches()).toBe(1)
    reflector.relist()
    await sample.clock.advance(1_000)
    expect([lists().length, watches().length]).toEqual([2, 2])
  })

  test('a watch that is refused for now continues from the last version, without a list', async () => {
    addFault('watch', refused(429), 3)
    startTestReflector()
    await sample.clock.advance(30)
    expect([lists().length, sample.server.openWatches()]).toEqual([1, 1])
  })

  test('a reflector that asks for it lists also after a watch that is refused for now', async () => {
    addFault('watch', refused(429), 3)
    startTestReflector({ relistsAfterOverload: true })
    await sample.clock.advance(30)
    expect([lists().length, sample.server.openWatches()]).toEqual([4, 1])
  })

  test('Retry-After takes precedence over the backoff', async () => {
    addFault('watch', refused(429, { retryAfterSeconds: 1 }))
    startTestReflector()
    await sample.clock.advance(999)
    expect([watches().length, failures()]).toMatchObject([1, [{ retryInMs: 1000, willRelist: false }]])
    await sample.clock.advance(1)
    expect(sample.server.openWatches()).toBe(1)
  })

  test('an event cut in the middle breaks the stream, and what came before it counts', async () => {
    startTestReflector()
    await atOnce()
    await createNode(sample.admin, 'd')
    recorded.watches[0]?.write(Buffer.from('{"type":"DELETED","object":{"metadata":{"na'))
    recorded.watches[0]?.end()
    await atOnce()
    expect(names()).toEqual(['a', 'b', 'c', 'd'])
    expect(failures().map(({ error }) => String(error))).toEqual([expect.stringContaining('inside an event')])
    await afterBackoff()
    expect(sample.server.openWatches()).toBe(1)
  })

  test('a watch that closes at once counts as a failure and causes no hot loop', async () => {
    addFault('watch', { kind: 'cut-watch', afterMs: 0, how: 'end' }, 5)
    startTestReflector()
    await sample.clock.advance(50)
    expect(failures()).toHaveLength(5)
    expect(sample.server.openWatches()).toBe(1)
  })

  test('a watch that closes right after an event counts as a failure, too', async () => {
    const event = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '999' } } }
    onWatch = (watch) => {
      watch.write(Buffer.from(`${JSON.stringify(event)}\n`))
      watch.end()
    }
    startTestReflector()
    await sample.clock.advance(200)
    expect(watches().length).toBeGreaterThan(20)
    expect(watches().length).toBeLessThan(100) // a backoff of 5 ms, and half of it at least
  })

  test('a silent watch causes a list', async () => {
    onWatch = (watch) => {
      if (recorded.watches.length === 1) silence(watch)
    }
    startTestReflector({ timing: { idleTimeoutMs: 50 } })
    await sample.clock.advance(49)
    expect(lists()).toHaveLength(1)
    await afterBackoff()
    expect([lists().length, sample.server.openWatches()]).toEqual([2, 1])
    expect(failures()).toMatchObject([{ during: 'watch', willRelist: true }])
  })

  test('a reflector waits for a slow server', async () => {
    for (const verb of ['list', 'watch'] as const) addFault(verb, { kind: 'slow', byMs: 20_000 })
    startTestReflector()
    await sample.clock.advance(40_000)
    expect(facts).toEqual([{ fact: 'listed', count: 3 }, { fact: 'watching' }])
  })

  test('an object deleted and created again in the gap is reported as both', async () => {
    startTestReflector()
    await atOnce()
    breakWatch()
    await remove('a')
    await createNode(sample.admin, 'a')
    sample.server.compact()
    await afterBackoff()
    expect(changesOf(updates.at(-1))).toEqual(['deleted a', 'added a'])
  })
})

describe('unknown states', () => {
  test.each([403, 500, 503])(
    'a first list answered with %i leaves the state unknown, with the reason, and reports nothing as deleted',
    async (status) => {
      addFault('list', refused(status, { message: 'no' }), 3)
      startTestReflector()
      await atOnce()
      expect(reflector.state()).toMatchObject({ state: 'unknown', lastError: { error: { status, message: 'no' } } })
      await sample.clock.advance(30)
      await reflector.synced
      expect(updates.map(({ state: { state }, changes }) => [state, changes.length])).toEqual([
        ['unknown', 0],
        ['synced', 3],
      ])
    },
  )

  test('a due list that fails turns synced into unknown and keeps the store', async () => {
    startTestReflector()
    await atOnce()
    addFault('list', refused(403), 1000)
    breakWatch()
    await afterBackoff()
    expect(reflector.state().state).toBe('unknown')
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(updates.every(({ changes }) => changes.every(({ type }) => type !== 'deleted'))).toBe(true)
  })

  test('a kind that the server does not serve is absent after two 404s, empties the store, and comes back', async () => {
    startTestReflector()
    await atOnce()
    addFault('list', refused(404, { reason: 'NotFound' }), 1000)
    breakWatch()
    await sample.clock.advance(30)
    expect(reflector.state()).toMatchObject({ state: 'absent' })
    expect(names()).toEqual([])
    expect(updates.map(({ state: { state }, changes }) => `${state} ${changes.length}`)).toEqual([
      'synced 3',
      'synced 0',
      'unknown 0',
      'absent 3',
    ])
    sample.server.faults.rules = []
    await afterBackoff()
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(reflector.state()).toMatchObject({ state: 'synced' })
  })

  test('one 404 of a server that is just starting leaves the store alone', async () => {
    startTestReflector()
    await atOnce()
    addFault('list', refused(404, { reason: 'NotFound' }))
    breakWatch()
    await sample.clock.advance(30)
    expect([lists().length, sample.server.openWatches()]).toEqual([3, 1])
    expect(updates.some(({ state: { state } }) => state === 'absent')).toBe(false)
    expect(names()).toEqual(['a', 'b', 'c'])
  })

  test('a reflector whose watch alone is forbidden polls, and says that it sees no changes', async () => {
    addFault('watch', refused(403, { message: 'no watch' }), 1000)
    startTestReflector()
    await atOnce()
    expect(reflector.state()).toMatchObject({ state: 'synced', lastError: { error: { message: 'no watch' } } })
    await createNode(sample.admin, 'd')
    await afterBackoff()
    expect(names()).toContain('d')
    expect(watches().length).toBeGreaterThan(1)
  })
})

describe('stopping', () => {
  test('an abort closes the watch and ends the loop', async () => {
    startTestReflector()
    await atOnce()
    expect(sample.server.openWatches()).toBe(1)
    abort.abort(new Error('bye'))
    await reflector.ended
    expect(sample.server.openWatches()).toBe(0)
  })

  test('an abort before the first list rejects synced', async () => {
    addFault('list', { kind: 'silent' })
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
    expect(lists()).toHaveLength(1)
    reflector = { ...reflector, ended: Promise.resolve() }
  })
})
