/** The reflector against a real API server that is killed, restarted, compacted, and cut off. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import type { Credentials } from '../../src/kube/credentials.ts'
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import {
  startReflector,
  type ReflectorUpdate,
  type Reflector,
  type ReflectorFact,
  type ReflectorOptions,
} from '../../src/kube/reflector.ts'
import { createKubeTransport, type KubeTransport } from '../../src/kube/transport.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { openGate, type Gate } from './gate.ts'

const widgetsPath = '/apis/test.skyhookd/v1/widgets'
const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const widgetCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.test.skyhookd' },
  spec: {
    group: 'test.skyhookd',
    scope: 'Cluster',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

let cluster: ApiServer
let gate: Gate
let transport: KubeTransport
let abort: AbortController
let reflectors: Reflector<KubeObject>[]
let updates: ReflectorUpdate<KubeObject>[]
let facts: ReflectorFact[]

beforeAll(async () => {
  cluster = await startApiServer()
  await installWidgets()
})
afterAll(async () => await cluster?.stop())

beforeEach(async () => {
  gate = await openGate(Number(new URL(cluster.url).port))
  const { ca, cert, key } = (await cluster.credentials.current()) as { ca: string; cert: string; key: string }
  transport = createKubeTransport({
    credentials: staticCredentials({ server: `https://127.0.0.1:${gate.port}`, ca, cert, key }),
    version: 'test',
    clock: systemClock,
  })
  abort = new AbortController()
  reflectors = []
  updates = []
  facts = []
})

afterEach(async () => {
  abort.abort(new Error('test is over'))
  await Promise.all(reflectors.map(async ({ ended }) => await ended))
  transport.close()
  await gate.close()
  for (const { metadata } of (await cluster.admin.json<{ items: KubeObject[] }>('GET', widgetsPath)).items)
    await cluster.admin.json('DELETE', `${widgetsPath}/${metadata.name}`)
})

async function installWidgets(): Promise<void> {
  await cluster.admin.json('POST', crdsPath, { body: widgetCrd })
  await eventually(async () => await cluster.admin.json('GET', widgetsPath))
}
const eventually = async (check: () => unknown): Promise<void> =>
  void (await vi.waitFor(check, { timeout: 30_000, interval: 20 }))
const widget = (name: string): unknown => ({
  apiVersion: 'test.skyhookd/v1',
  kind: 'Widget',
  metadata: { name },
  spec: { size: 1 },
  status: {},
})
const create = async (...names: string[]): Promise<void> => {
  for (const name of names) await cluster.admin.json('POST', widgetsPath, { body: widget(name) })
}
const remove = async (name: string): Promise<unknown> => await cluster.admin.json('DELETE', `${widgetsPath}/${name}`)
const lists = (): number => facts.filter(({ fact }) => fact === 'listed').length
const names = (reflector: Reflector<KubeObject>): string[] => [...reflector.store.keys()].toSorted()

function reflect(options: Partial<ReflectorOptions<KubeObject>> = {}): Reflector<KubeObject> {
  const reflector = startReflector<KubeObject>(transport, {
    clock: systemClock,
    random: systemRandom,
    path: widgetsPath,
    onChange: (update) => updates.push(update),
    onFact: (fact) => facts.push(fact),
    signal: abort.signal,
    ...options,
    timing: { backoff: { initialMs: 100, maxMs: 100 }, ...options.timing },
  })
  reflectors.push(reflector)
  return reflector
}

describe('a custom resource by its metadata', () => {
  test('a reflector of metadata gets neither spec nor status, but a new resourceVersion for a status write and a new generation for a spec write', async () => {
    await create('a')
    const reflector = reflect({ metadataOnly: true })
    await reflector.synced
    const before = reflector.store.get('a')
    expect(Object.keys(before ?? {}).toSorted()).toEqual(
      ['apiVersion', 'kind', 'metadata'].filter((key) => key in (before ?? {})),
    )
    expect(before?.metadata).not.toHaveProperty('managedFields')

    const contentType = 'application/merge-patch+json'
    await cluster.admin.json('PATCH', `${widgetsPath}/a/status`, {
      body: { status: { nodes: 'x'.repeat(50_000) } },
      contentType,
    })
    await eventually(() =>
      expect(reflector.store.get('a')?.metadata.resourceVersion).not.toBe(before?.metadata.resourceVersion),
    )
    expect(reflector.store.get('a')?.metadata.generation).toBe(before?.metadata.generation)
    expect(reflector.store.get('a')).not.toHaveProperty('status')

    await cluster.admin.json('PATCH', `${widgetsPath}/a`, { body: { spec: { size: 2 } }, contentType })
    await eventually(() =>
      expect(reflector.store.get('a')?.metadata.generation).toBe((before?.metadata.generation ?? 0) + 1),
    )
  })

  test('a reflector reads a long list page by page', async () => {
    await create(...Array.from({ length: 25 }, (_, number) => `w${number}`))
    const reflector = reflect({ metadataOnly: true, timing: { pageSize: 10 } })
    await reflector.synced
    expect(reflector.store.size).toBe(25)
  })
})

test('a reflector of one Node by name sees no changes of other Nodes', async () => {
  const node = (name: string): unknown => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } })
  for (const name of ['own', 'other']) await cluster.admin.json('POST', '/api/v1/nodes', { body: node(name) })
  const reflector = reflect({ path: '/api/v1/nodes', query: { fieldSelector: 'metadata.name=own' } })
  await reflector.synced
  expect(names(reflector)).toEqual(['own'])
  const seen = updates.length
  await cluster.kubectl('annotate', 'node', 'other', 'heartbeat=1')
  await cluster.kubectl('annotate', 'node', 'own', 'ours=1')
  await eventually(() => expect(reflector.store.get('own')?.metadata.annotations).toMatchObject({ ours: '1' }))
  expect(updates.slice(seen).flatMap(({ changes }) => changes.map(({ key }) => key))).toEqual(['own'])
})

describe('an API server that is killed and comes back', () => {
  test('a restart of the API server loses no object, reports no deletion and never makes the kind absent or unknown', async () => {
    await create('a', 'b')
    const reflector = reflect()
    await reflector.synced
    for (const name of ['c', 'd']) {
      await cluster.crash()
      await eventually(() => expect(reflector.state()).toHaveProperty('lastError'))
      await cluster.restart()
      await create(name)
      await eventually(() => expect(names(reflector)).toContain(name))
    }
    expect(names(reflector)).toEqual(['a', 'b', 'c', 'd'])
    // Its watch cache starts empty, so it answers 410 to versions from before the crash: at most one list each time.
    expect(lists()).toBeLessThanOrEqual(3)
    expect([...new Set(updates.map(({ state: { state } }) => state))]).toEqual(['synced'])
    expect(updates.flatMap(({ changes }) => changes.map(({ type, key }) => `${type} ${key}`))).toEqual([
      'added a',
      'added b',
      'added c',
      'added d',
    ])
  })

  test('a reflector that starts without an API server reports unknown until its first list, never absent', async () => {
    await create('a')
    await cluster.crash()
    const reflector = reflect()
    await eventually(() => expect(reflector.state()).toMatchObject({ state: 'unknown', lastError: {} }))
    await cluster.restart()
    await reflector.synced
    expect(names(reflector)).toEqual(['a'])
    expect([...new Set(updates.map(({ state: { state } }) => state))]).toEqual(['unknown', 'synced'])
  })

  test('a reflector lists again after a 410 and reports the deletion that it missed', async () => {
    await create('a', 'b')
    const reflector = reflect()
    await reflector.synced
    gate.shut()
    await remove('a')
    await create('c')
    for (let i = 0; i < 20; i++) await cluster.kubectl('annotate', 'namespace', 'default', `n=${i}`, '--overwrite')
    await cluster.compact()
    await cluster.crash()
    await cluster.restart()
    gate.open()
    await eventually(() => expect(names(reflector)).toEqual(['b', 'c']))
    expect(lists()).toBe(2)
    expect(facts.some((fact) => fact.fact === 'failed' && fact.willRelist && fact.during === 'watch')).toBe(true)
    expect(updates.flatMap(({ changes }) => changes.map(({ type, key }) => `${type} ${key}`)).toSorted()).toEqual([
      'added a',
      'added b',
      'added c',
      'deleted a',
    ])
  })

  test('a reflector reports an object that was deleted and recreated during a cut connection as both', async () => {
    await create('a')
    const reflector = reflect()
    await reflector.synced
    const before = reflector.store.get('a')?.metadata.uid
    gate.shut()
    await remove('a')
    await create('a')
    gate.open()
    await eventually(() => expect(reflector.store.get('a')?.metadata.uid).not.toBe(before))
    expect(updates.flatMap(({ changes }) => changes.map(({ type, key }) => `${type} ${key}`))).toEqual([
      'added a',
      'deleted a',
      'added a',
    ])
  })
})

test('a reflector shows the objects of an older etcd seconds after its restore, and follows them', async () => {
  await create('a')
  await cluster.backUp()
  const reflector = reflect()
  await reflector.synced
  await create('b', 'c', 'd')
  await cluster.kubectl('annotate', 'widget', 'a', 'is=lost')
  for (let i = 0; i < 50; i++) await cluster.kubectl('annotate', 'namespace', 'default', `n=${i}`, '--overwrite')
  await create('e')
  await eventually(() => expect(names(reflector)).toEqual(['a', 'b', 'c', 'd', 'e']))
  const lostVersion = Number(reflector.store.get('e')?.metadata.resourceVersion)
  await cluster.restore()
  await vi.waitFor(() => expect(names(reflector)).toEqual(['a']), { timeout: 10_000, interval: 20 })
  expect(reflector.store.get('a')?.metadata.annotations).toBeUndefined()
  await create('f')
  await eventually(() => expect(names(reflector)).toEqual(['a', 'f']))
  expect(Number(reflector.store.get('f')?.metadata.resourceVersion)).toBeLessThan(lostVersion)
})

test('a reflector reports a removed CRD as absent and empty, and follows it again once it is installed', async () => {
  await create('a')
  const reflector = reflect()
  await reflector.synced
  await cluster.kubectl('delete', 'crd', 'widgets.test.skyhookd')
  await eventually(() => expect(reflector.state()).toMatchObject({ state: 'absent' }))
  expect(names(reflector)).toEqual([])
  await installWidgets()
  await create('b')
  await eventually(() => expect(names(reflector)).toEqual(['b']))
  expect(reflector.state()).toMatchObject({ state: 'synced' })
})

test('a reflector without the right to list reports unknown with the message of the server, and syncs once granted', async () => {
  await create('a')
  await cluster.kubectl('create', 'serviceaccount', 'watcher')
  const token = (await cluster.kubectl('create', 'token', 'watcher')).trim()
  const { ca } = await cluster.credentials.current()
  const credentials: Credentials = staticCredentials({ server: cluster.url, ca: ca ?? '', token })
  const client = createKubeTransport({ credentials, version: 'test', clock: systemClock })
  const reflector = startReflector<KubeObject>(client, {
    clock: systemClock,
    random: systemRandom,
    path: widgetsPath,
    onChange: (update) => updates.push(update),
    signal: abort.signal,
    timing: { backoff: { initialMs: 100, maxMs: 100 } },
  })
  reflectors.push(reflector)
  await eventually(() =>
    expect(reflector.state()).toMatchObject({ state: 'unknown', lastError: { error: { reason: 'Forbidden' } } }),
  )
  await cluster.kubectl('create', 'clusterrole', 'watcher', '--verb=list,watch', '--resource=widgets.test.skyhookd')
  await cluster.kubectl(
    'create',
    'clusterrolebinding',
    'watcher',
    '--clusterrole=watcher',
    '--serviceaccount=default:watcher',
  )
  await reflector.synced
  expect(names(reflector)).toEqual(['a'])
  expect(updates.flatMap(({ changes }) => changes).every(({ type }) => type === 'added')).toBe(true)
  client.close()
})
