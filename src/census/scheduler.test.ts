/** All Skyhooks together against a server that misbehaves; time runs, the watches are played by hand. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { startFakeApiServer, type FakeApiServer, type FakeObject } from '../../test/support/fake-api-server.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { type Ledger, ledgerAnnotation } from '../lease/ledger.ts'
import { ledgerName } from '../lease/names.ts'
import type { Lease } from '../lease/slot.ts'
import { skyhooksPath } from '../schemas/api.ts'
import type { ObjectMeta } from '../schemas/kubernetes.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { finalizerName } from './finalizer.ts'
import { startScheduler, type Scheduler } from './scheduler.ts'
import type { CensusNode } from './node-facts.ts'
import { conditionOf, type SkyhookStatus } from './skyhook-status.ts'
import { allAgents, nodeReporting, skyhookWith, spec } from '../../test/support/census-objects.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'

let server: FakeApiServer
let transport: KubeTransport
let abort: AbortController
let nodes: Map<string, CensusNode>
let skyhooks: Map<string, Skyhook & KubeObject>
let ledgers: Map<string, Lease>
let isTrusted: boolean
let failed: unknown[]
let uncounted: unknown[]
let events: string[]
let relisted: string[]
let census: Scheduler

beforeEach(async () => {
  server = await startFakeApiServer([skyhooksPath, leasesPath])
  transport = server.connect({ rate: false })
  abort = new AbortController()
  nodes = new Map()
  skyhooks = new Map()
  ledgers = new Map()
  isTrusted = true
  failed = []
  uncounted = []
  events = []
  relisted = []
  census = startScheduler({
    defaultBudget: {},
    leases: { transport, namespace: 'skyhook', clock: systemClock },
    random: systemRandom,
    view: {
      nodes,
      skyhooks,
      ledgers,
      agents: () => allAgents(),
      policyOf: () => undefined,
      isTrusted: () => isTrusted,
      relist: (what) => void relisted.push(what),
    },
    onCounted: () => undefined,
    report: (_, { reason, message }) => void events.push(`${reason}: ${message}`),
    onFailed: (_, error) => void failed.push(error),
    onCountFailed: (_, error) => void uncounted.push(error),
    signal: abort.signal,
  })
})
afterEach(async () => {
  abort.abort(new Error('test is over'))
  transport.close()
  await server.stop()
})

/** Stores the Skyhook and shows it to the census, as its watch would. */
function put(name = 'demo'): void {
  const { uid: _, resourceVersion: __, ...metadata } = skyhookWith({ metadata: { name } }).metadata
  deliver(server.put(skyhooksPath, { metadata: { ...metadata, annotations }, spec }))
}
const annotations = { 'skyhook.nvidia.com/version': 'v0.15.0' }
/** A status is PUT with the least of metadata; the real server keeps the rest. */
function deliver(stored: FakeObject | undefined): void {
  const given = structuredClone(stored) as unknown as Skyhook & KubeObject
  const object = { ...given, metadata: { generation: 3, annotations, ...given.metadata } }
  skyhooks.set(object.metadata.name, object)
  census.skyhooksChanged([{ type: 'modified', key: object.metadata.name, object }])
}
const deliverLatest = (name = 'demo'): void => deliver(server.get(skyhooksPath, name))
function setNode(name: string, node: CensusNode | undefined): void {
  const before = nodes.get(name)
  if (node === undefined) nodes.delete(name)
  else nodes.set(name, node)
  census.nodeChanged(before, node)
}
const status = (name = 'demo'): SkyhookStatus | undefined =>
  server.get(skyhooksPath, name)?.['status'] as SkyhookStatus | undefined
const isStatusWrite = ({ method, path }: { method: string; path: string }): boolean =>
  method === 'PUT' && path.endsWith('/status')
const statusWrites = (): number => server.requests.filter(isStatusWrite).length
const statusesWritten = (): unknown[] =>
  server.requests.filter(isStatusWrite).map(({ body }) => (body as { status: SkyhookStatus }).status.status)
const eventually = async (check: () => void, timeout = 3_000): Promise<void> =>
  await vi.waitFor(check, { timeout, interval: 5 })

test('a change during a write is not lost', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  server.fault(isStatusWrite, { kind: 'slow', ms: 200 })
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  setNode('n1', nodeReporting('n1', { status: 'erroring' }))
  // well before it would be counted again anyway
  await eventually(() => expect(statusesWritten()).toEqual(['in_progress', 'erroring']), 600)
})

test('an own write counts before the watch shows it, so it is neither a conflict nor written twice', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  await eventually(() => expect(status()?.status).toBe('in_progress'))
  // a condition turns: written at once, over our own unseen write
  setNode('n1', nodeReporting('n1', { status: 'erroring' }))
  await eventually(() => expect(status()?.status).toBe('erroring'))
  expect(failed).toEqual([])
  expect(statusWrites()).toBe(2)
})

test('bursts are merged, and progress waits for its interval', async () => {
  for (let at = 0; at < 20; at++) setNode(`n${at}`, nodeReporting(`n${at}`, { status: 'in_progress' }))
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  deliverLatest()
  for (let at = 0; at < 19; at++) {
    setNode(`n${at}`, nodeReporting(`n${at}`))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(statusWrites()).toBe(1)
  await eventually(() => expect(status()?.completeNodes).toBe('19/20'))
  expect(statusWrites()).toBe(2)
  deliverLatest()
  setNode('n19', nodeReporting('n19'))
  const reportedMs = performance.now()
  await eventually(() => expect(conditionOf(status(), 'Ready')?.status).toBe('True'))
  expect(performance.now() - reportedMs).toBeLessThan(500) // what somebody waits for does not wait
})

test('nothing is written while lists and watches are not trusted, and everything is written afterwards', async () => {
  isTrusted = false
  put()
  setNode('n1', nodeReporting('n1'))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(server.requests).toEqual([])
  isTrusted = true
  census.enqueueAll()
  await eventually(() => expect(status()?.nodesSelected).toBe(1))
})

test('a concurrent change of the Skyhook is not overwritten, and the new spec is counted', async () => {
  setNode('n1', nodeReporting('n1'))
  put()
  const stored = server.get(skyhooksPath, 'demo') as FakeObject
  // not seen by the census yet
  const newer = server.put(skyhooksPath, { ...stored, metadata: { ...stored.metadata, generation: 4 } })
  await eventually(() => expect(statusWrites()).toBe(1))
  expect(status()).toBeUndefined()
  deliver(newer)
  await eventually(() => expect(status()?.observedGeneration).toBe(4))
  expect(failed).toEqual([])
})

describe('an edit', () => {
  const editTo = (generation: number, change: object): void => {
    const stored = server.get(skyhooksPath, 'demo') as FakeObject
    deliver(
      server.put(skyhooksPath, {
        ...stored,
        metadata: { ...stored.metadata, generation },
        spec: { ...spec, ...change },
      }),
    )
  }
  const otherWork = { packages: { tuning: { version: '9', image: 'x' } } }
  const ready = (): string => {
    const condition = conditionOf(status(), 'Ready')
    return `${condition?.status} ${condition?.reason} ${condition?.observedGeneration}`
  }
  beforeEach(async () => {
    setNode('n1', nodeReporting('n1'))
    put()
    await eventually(() => expect(ready()).toBe('True Complete 3'))
    deliverLatest()
  })

  test('an edit that gives no node work leaves the Skyhook Ready', async () => {
    editTo(4, { interruptionBudget: { count: 2 } })
    await eventually(() => expect(ready()).toBe('True Complete 4'), 500)
  })

  test('an edit that is reverted gives nodes time to report work that they may have started', async () => {
    editTo(4, otherWork)
    await eventually(() => expect(ready()).toBe('False Waiting 4'))
    editTo(5, {})
    await eventually(() => expect(ready()).toBe('False SpecChanged 5'))
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(ready()).toBe('False SpecChanged 5')
    await eventually(() => expect(ready()).toBe('True Complete 5'), 1_500)
  })

  test('an edit that is reverted before the next count gives nodes the same time', async () => {
    editTo(4, otherWork)
    editTo(5, {})
    await eventually(() => expect(status()?.observedGeneration).toBe(5))
    expect(ready()).toBe('False SpecChanged 5')
  })
})

test('a write that conflicts is repeated with growing pauses while the watch shows nothing new', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  server.fault(isStatusWrite, { kind: 'status', status: 409 }, 100)
  put()
  for (let reconcile = 0; reconcile < 40; reconcile++) {
    setNode('n1', nodeReporting('n1', { status: reconcile % 2 === 0 ? 'in_progress' : 'erroring' }))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  expect(statusWrites()).toBe(3) // at once, after 0.5 s, and 1 s later
  expect(relisted).toEqual(['skyhook', 'skyhook'])
  deliverLatest()
  await eventually(() => expect(statusWrites()).toBe(4), 300)
})

test('a status that etcd lost in a restore is written again after the next LIST', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  const stored = server.get(skyhooksPath, 'demo') as FakeObject
  await eventually(() => expect(status()?.status).toBe('in_progress')) // which the watch has not shown yet
  const restored = server.put(skyhooksPath, stored)
  skyhooks.set('demo', { ...(restored as unknown as Skyhook & KubeObject) })
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(status()).toBeUndefined()
  census.listed()
  await eventually(() => expect(status()?.status).toBe('in_progress'), 1_500)
})

test('a conflict over an own write that etcd lost in a restore ends with what the watch shows', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  const stored = server.get(skyhooksPath, 'demo') as FakeObject
  await eventually(() => expect(status()?.status).toBe('in_progress')) // which the watch has not shown yet
  const restored = server.put(skyhooksPath, stored)
  skyhooks.set('demo', { ...(restored as unknown as Skyhook & KubeObject) })
  setNode('n1', nodeReporting('n1', { status: 'erroring' }))
  await eventually(() => expect(status()?.status).toBe('erroring'), 1_500)
})

describe('a ledger of a later generation than the watch shows', () => {
  const ledger = (): Ledger => {
    const lease = server.get(leasesPath, ledgerName(skyhooks.get('demo')?.metadata as ObjectMeta))
    const annotations = lease?.metadata['annotations'] as ObjectMeta['annotations']
    return JSON.parse(annotations?.[ledgerAnnotation] ?? '{}') as Ledger
  }
  const isRead = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'GET' && path === `${skyhooksPath}/demo`

  /** Another census has counted generation 9; the watch shows generation 3. */
  async function countAhead(): Promise<void> {
    put()
    await eventually(() => expect(ledger().generation).toBe(3))
    const name = ledgerName(skyhooks.get('demo')?.metadata as ObjectMeta)
    const stored = server.get(leasesPath, name) as FakeObject
    const annotations = { [ledgerAnnotation]: JSON.stringify({ ...ledger(), generation: 9 }) }
    const object = server.put(leasesPath, { ...stored, metadata: { ...stored.metadata, annotations } })
    ledgers.set(name, object as unknown as Lease)
    census.ledgersChanged([{ type: 'modified', key: name, object: object as unknown as Lease }])
  }

  test('a ledger of a generation that etcd has lost is replaced once the Skyhook was read', async () => {
    await countAhead()
    await new Promise((resolve) => setTimeout(resolve, 800))
    expect([ledger().generation, server.requests.filter(isRead).length]).toEqual([9, 0]) // the watch may be late
    await eventually(() => expect(ledger().generation).toBe(3), 10_000)
    expect(server.requests.filter(isRead)).toHaveLength(1)
  })

  test('a ledger of a generation that the watch does not show yet is left alone', async () => {
    await countAhead()
    const stored = server.get(skyhooksPath, 'demo') as FakeObject
    server.put(skyhooksPath, { ...stored, metadata: { ...stored.metadata, generation: 9 } })
    await eventually(() => expect(server.requests.filter(isRead)).toHaveLength(1), 10_000)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(ledger().generation).toBe(9)
    expect(relisted).toContain('skyhook')
    expect(failed).toEqual([])
  })
})

test('a Skyhook whose deletion etcd lost in a restore gives nodes their time again when it is deleted again', async () => {
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  const stored = server.get(skyhooksPath, 'demo') as FakeObject
  const deletion = { deletionTimestamp: '2026-11-22T00:00:00Z', finalizers: [finalizerName] }
  const deliverDeleted = (): void =>
    deliver(server.put(skyhooksPath, { ...stored, metadata: { ...stored.metadata, ...deletion } }))
  server.fault(({ method }) => method === 'PATCH', { kind: 'status', status: 409 }, 100)
  const patches = (): number => server.requests.filter(({ method }) => method === 'PATCH').length
  deliverDeleted()
  await eventually(() => expect(patches()).toBeGreaterThan(0), 10_000) // two seconds later
  deliver(server.put(skyhooksPath, stored))
  await new Promise((resolve) => setTimeout(resolve, 200))
  const before = patches()
  deliverDeleted()
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(patches()).toBe(before)
})

test.each([403, 500, 503])(
  'a write refused with %i is retried with growing delays, regardless of changes',
  async (code) => {
    setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
    server.fault(isStatusWrite, { kind: 'status', status: code }, 100)
    put()
    for (let reconcile = 0; reconcile < 30; reconcile++) {
      setNode('n1', nodeReporting('n1', { status: reconcile % 2 === 0 ? 'in_progress' : 'erroring' }))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(statusWrites()).toBeGreaterThan(1)
    expect(statusWrites()).toBeLessThan(6)
    expect(failed.length).toBeGreaterThan(0)
  },
)

test('a ledger that fails delays no status, and a slow Skyhook delays no other', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  server.fault(({ path, method }) => method === 'POST' && path === leasesPath, { kind: 'status', status: 403 }, 100)
  server.fault(({ path }) => path === `${skyhooksPath}/slow/status`, { kind: 'silent' }, 100)
  put('slow')
  put('demo')
  await eventually(() => expect(status()?.status).toBe('in_progress'))
  await eventually(() => expect(failed).not.toEqual([]))
})

test('a Skyhook that cannot be counted is tried less and less often, and stops no other', async () => {
  put('broken')
  const broken = skyhooks.get('broken') as Skyhook & KubeObject
  let tries = 0
  Object.defineProperty(broken.metadata, 'annotations', {
    get() {
      tries++
      throw new TypeError('it has a form that nobody thought of')
    },
  })
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  await eventually(() => expect(status()?.status).toBe('in_progress'))
  for (let round = 0; round < 20; round++) {
    census.enqueueAll()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  expect([tries > 0, tries < 5]).toEqual([true, true])
  expect(uncounted).toHaveLength(tries)
  expect(String(uncounted[0])).toContain('a form that nobody thought of')
  put('broken')
  await eventually(() => expect(status('broken')?.status).toBe('waiting'), 10_000)
})

test('a deleted Skyhook is forgotten', async () => {
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  const object = skyhooks.get('demo') as Skyhook & KubeObject
  server.remove(skyhooksPath, 'demo')
  skyhooks.delete('demo')
  census.skyhooksChanged([{ type: 'deleted', key: 'demo', object }])
  setNode('n1', nodeReporting('n1'))
  census.enqueueAll()
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(statusWrites()).toBe(1)
})
