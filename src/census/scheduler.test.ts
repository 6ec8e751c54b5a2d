/** All Skyhooks together against a server that misbehaves; the watches are played by hand. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { leasesPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { allAgents, failedForGood, nodeReporting, spec } from '../../test/kit/objects/census-objects.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import type { KubeObject } from '../kube/objects.ts'
import { type Ledger, ledgerAnnotation } from '../lease/ledger.ts'
import { ledgerName } from '../lease/names.ts'
import type { Lease } from '../lease/slot.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { finalizerName, type Skyhook, type SkyhookSpec } from '../schemas/skyhook.ts'
import { startScheduler, type Scheduler } from './scheduler.ts'
import type { CensusNode } from './model/node-facts.ts'
import { conditionOf, type SkyhookStatus } from './model/skyhook-status.ts'

let api: Sample
let abort: AbortController
let nodes: Map<string, CensusNode>
let skyhooks: Map<string, Skyhook & KubeObject>
let ledgers: Map<string, Lease>
let isTrusted: boolean
let failed: unknown[]
let uncounted: unknown[]
let events: string[]
let relisted: string[]
/** Otherwise a test shows them by hand; ledgers are seen as they are written. */
let areSkyhooksWatched: boolean
let census: Scheduler

beforeEach(() => {
  api = sampleServer()
  abort = new AbortController()
  nodes = new Map()
  skyhooks = new Map()
  ledgers = new Map()
  isTrusted = true
  failed = []
  uncounted = []
  events = []
  relisted = []
  areSkyhooksWatched = false
  api.server.observe({
    committed({ type, resource, version }) {
      if (resource.plural === 'skyhooks' && areSkyhooksWatched) deliver(version.object.metadata.name)
      if (resource.plural !== 'leases' || type === 'DELETED') return
      const object = structuredClone(version.object) as unknown as Lease
      ledgers.set(object.metadata.name, object)
      census.ledgersChanged([{ type: 'modified', key: object.metadata.name, object }])
    },
  })
  census = startScheduler({
    defaultBudget: {},
    leases: { transport: api.connect(), namespace: 'default', clock: api.clock },
    random: createSeededRandom(1),
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
afterEach(() => abort.abort(new Error('test is over')))

const annotations = { 'skyhook.nvidia.com/version': 'v0.15.0' }
/** Stores the Skyhook and shows it to the census, as its watch would. */
function put(name = 'demo', next: SkyhookSpec = spec): void {
  api.put(skyhooksPath, { metadata: { name, annotations }, spec: next })
  deliver(name)
}
const stored = (name = 'demo'): (Skyhook & KubeObject) | undefined =>
  api.get(skyhooksPath, name) as (Skyhook & KubeObject) | undefined
function deliver(name = 'demo'): void {
  const object = structuredClone(stored(name)) as Skyhook & KubeObject
  skyhooks.set(name, object)
  census.skyhooksChanged([{ type: 'modified', key: name, object }])
}
function setNode(name: string, node: CensusNode | undefined): void {
  const before = nodes.get(name)
  if (node === undefined) nodes.delete(name)
  else nodes.set(name, node)
  census.nodeChanged(before, node)
}
/** Stores the next generation. The census does not see it. */
const edit = (change: object): void =>
  void api.put(skyhooksPath, { metadata: { name: 'demo', annotations }, spec: { ...spec, ...change } })
const status = (name = 'demo'): SkyhookStatus | undefined => stored(name)?.status as SkyhookStatus | undefined
const isStatusWrite = ({ method, path }: { method: string; path: string }): boolean =>
  method === 'PUT' && path.endsWith('/status')
const statusesWritten = (): unknown[] =>
  api.sent.filter(isStatusWrite).map(({ body }) => (body as { status: SkyhookStatus }).status.status)
const statusWrites = (): number => statusesWritten().length
const eventually = async (check: () => void, withinMs = 3_000): Promise<void> => await api.eventually(check, withinMs)
const pass = async (ms: number): Promise<void> => await api.clock.advance(ms)

test('a change during a write is not lost', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  api.fault(isStatusWrite, { kind: 'slow', byMs: 200 })
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  setNode('n1', nodeReporting('n1', failedForGood))
  areSkyhooksWatched = true
  // well before it would be counted again anyway
  await eventually(() => expect(statusesWritten()).toEqual(['in_progress', 'erroring']), 600)
})

test('the census waits until the watch shows its write, so the next one is neither a conflict nor written twice', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  await eventually(() => expect(status()?.status).toBe('in_progress'))
  // a condition changes: written as soon as our own write is seen
  setNode('n1', nodeReporting('n1', failedForGood))
  await pass(500)
  expect(statusWrites()).toBe(1)
  deliver()
  await eventually(() => expect(status()?.status).toBe('erroring'), 20)
  expect([failed, relisted, statusWrites()]).toEqual([[], [], 2])
})

test('bursts are merged, and progress waits for its interval', async () => {
  for (let at = 0; at < 20; at++) setNode(`n${at}`, nodeReporting(`n${at}`, { status: 'in_progress' }))
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  deliver()
  for (let at = 0; at < 19; at++) {
    setNode(`n${at}`, nodeReporting(`n${at}`))
    await pass(10)
  }
  expect(statusWrites()).toBe(1)
  await eventually(() => expect(status()?.completeNodes).toBe('19/20'))
  expect(statusWrites()).toBe(2)
  deliver()
  setNode('n19', nodeReporting('n19'))
  // what somebody waits for does not wait
  await eventually(() => expect(conditionOf(status(), 'Ready')?.status).toBe('True'), 500)
})

test('nothing is written while lists and watches are not trusted, and everything is written afterwards', async () => {
  isTrusted = false
  put()
  setNode('n1', nodeReporting('n1'))
  await pass(200)
  expect(api.sent).toEqual([])
  isTrusted = true
  census.enqueueAll()
  await eventually(() => expect(status()?.nodesSelected).toBe(1))
})

test('a concurrent change of the Skyhook is not overwritten, and the new spec is counted', async () => {
  setNode('n1', nodeReporting('n1'))
  put()
  edit({ interruptionBudget: { count: 2 } }) // not seen by the census yet
  await eventually(() => expect(statusWrites()).toBe(1))
  expect(status()).toBeUndefined()
  deliver()
  await eventually(() => expect(status()?.observedGeneration).toBe(2))
  expect(failed).toEqual([])
})

describe('an edit', () => {
  const editTo = (change: object): void => {
    edit(change)
    deliver()
  }
  const otherWork = { packages: { tuning: { version: '9', image: 'x' } } }
  const ready = (): string => {
    const condition = conditionOf(status(), 'Ready')
    return `${condition?.status} ${condition?.reason} ${condition?.observedGeneration}`
  }
  beforeEach(async () => {
    areSkyhooksWatched = true
    setNode('n1', nodeReporting('n1'))
    put()
    await eventually(() => expect(ready()).toBe('True Complete 1'))
  })

  test('an edit that gives no node work leaves the Skyhook Ready', async () => {
    editTo({ interruptionBudget: { count: 2 } })
    await eventually(() => expect(ready()).toBe('True Complete 2'), 500)
  })

  test('an edit that is reverted gives nodes time to report work that they may have started', async () => {
    editTo(otherWork)
    await eventually(() => expect(ready()).toBe('False Waiting 2'))
    editTo({})
    await eventually(() => expect(ready()).toBe('False SpecChanged 3'))
    await pass(500)
    expect(ready()).toBe('False SpecChanged 3')
    await eventually(() => expect(ready()).toBe('True Complete 3'), 1_500)
  })

  test('an edit that is reverted before the next count gives nodes the same time', async () => {
    editTo(otherWork)
    editTo({})
    await eventually(() => expect(status()?.observedGeneration).toBe(3))
    expect(ready()).toBe('False SpecChanged 3')
  })
})

test('a write that conflicts is repeated with growing pauses while the watch shows nothing new', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  api.fault(isStatusWrite, { kind: 'refuse', code: 409 }, 100)
  put()
  for (let reconcile = 0; reconcile < 40; reconcile++) {
    setNode('n1', nodeReporting('n1', { status: reconcile % 2 === 0 ? 'in_progress' : 'erroring' }))
    await pass(50)
  }
  expect(statusWrites()).toBe(3) // at once, after 0.5 s, and 1 s later
  expect(relisted).toEqual(['skyhook', 'skyhook'])
  deliver()
  await eventually(() => expect(statusWrites()).toBe(4), 300)
})

test('a status that etcd lost in a restore is written again after the next LIST', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  const backup = api.server.backUp()
  await eventually(() => expect(status()?.status).toBe('in_progress')) // which the watch has not shown yet
  api.server.restore(backup)
  await pass(100)
  expect(status()).toBeUndefined()
  census.listed('skyhook')
  await eventually(() => expect(status()?.status).toBe('in_progress'), 1_500)
})

test('a conflict over an own write that etcd lost in a restore ends with what the watch shows', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  put()
  const backup = api.server.backUp()
  await eventually(() => expect(status()?.status).toBe('in_progress')) // which the watch has not shown yet
  api.server.restore(backup)
  setNode('n1', nodeReporting('n1', { status: 'erroring' }))
  await eventually(() => expect(status()?.status).toBe('erroring'), 1_500)
})

describe('a ledger of a later generation than the watch shows', () => {
  const ledger = (): Ledger => {
    const lease = api.get(leasesPath, ledgerName({ name: 'demo', uid: stored()?.metadata.uid ?? '' }))
    return JSON.parse(lease?.metadata.annotations?.[ledgerAnnotation] ?? '{}') as Ledger
  }
  /** Another census has counted generation 2; the watch shows generation 1. */
  async function countAhead(): Promise<void> {
    areSkyhooksWatched = true
    put()
    await pass(2_000)
    expect(ledger().generation).toBe(1)
    areSkyhooksWatched = false
    const name = ledgerName({ name: 'demo', uid: stored()?.metadata.uid ?? '' })
    const { metadata, ...rest } = api.get(leasesPath, name) as Lease
    const annotations = { [ledgerAnnotation]: JSON.stringify({ ...ledger(), generation: 2 }) }
    const object = api.put(leasesPath, { ...rest, metadata: { ...metadata, annotations } }) as Lease
    ledgers.set(name, object)
    census.ledgersChanged([{ type: 'modified', key: name, object }])
  }

  test('a ledger of a generation that etcd has lost is replaced once Skyhooks were listed', async () => {
    await countAhead()
    await pass(1_500)
    expect([ledger().generation, relisted]).toEqual([2, []]) // the watch may be late
    await eventually(() => expect(relisted).toEqual(['skyhook']), 1_000)
    census.listed('ledger')
    await pass(5_000)
    expect(ledger().generation).toBe(2)
    census.listed('skyhook')
    await eventually(() => expect(ledger().generation).toBe(1), 100)
  })

  test('a ledger of a generation that the watch does not show yet is left alone, and the LIST asked for again', async () => {
    await countAhead()
    edit({ interruptionBudget: { count: 2 } })
    await eventually(() => expect(relisted).toEqual(['skyhook', 'skyhook']), 33_000)
    expect(ledger().generation).toBe(2)
    deliver()
    census.listed('skyhook')
    await pass(1_000)
    const ledgerWrites = api.sent.filter(({ method, path }) => method === 'PUT' && path.startsWith(leasesPath))
    expect(
      ledgerWrites
        .map(
          ({ body }) =>
            (JSON.parse((body as Lease).metadata.annotations?.[ledgerAnnotation] ?? '') as Ledger).generation,
        )
        .filter((generation) => generation < 2),
    ).toEqual([])
    expect(failed).toEqual([])
  })
})

test('a Skyhook whose deletion etcd lost in a restore gives nodes their time again when it is deleted again', async () => {
  put('demo', { packages: { tuning: { version: '1.1.0', image: 'x', uninstall: { enabled: true } } } })
  await eventually(() => expect(stored()?.metadata.finalizers).toEqual([finalizerName]))
  deliver()
  const backup = api.server.backUp()
  const deleteIt = (): void => {
    api.remove(skyhooksPath, 'demo')
    deliver()
  }
  const isPatch = ({ method }: { method: string }): boolean => method === 'PATCH'
  const patches = (): number => api.sent.filter(isPatch).length
  api.fault(isPatch, { kind: 'refuse', code: 409 }, 100)
  const patchesBefore = patches()
  deleteIt()
  await eventually(() => expect(patches()).toBeGreaterThan(patchesBefore), 10_000) // two seconds later
  api.server.restore(backup)
  deliver()
  await pass(200)
  const before = patches()
  deleteIt()
  await pass(1_500)
  expect(patches()).toBe(before)
  await pass(1_000)
  expect(patches()).toBeGreaterThan(before)
})

test.each([403, 500, 503])(
  'a write refused with %i is retried with growing delays, regardless of changes',
  async (code) => {
    setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
    api.fault(isStatusWrite, { kind: 'refuse', code }, 100)
    put()
    for (let reconcile = 0; reconcile < 30; reconcile++) {
      setNode('n1', nodeReporting('n1', { status: reconcile % 2 === 0 ? 'in_progress' : 'erroring' }))
      await pass(50)
    }
    expect(statusWrites()).toBeGreaterThan(1)
    expect(statusWrites()).toBeLessThan(6)
    expect(failed.length).toBeGreaterThan(0)
  },
)

test('a ledger that fails delays no status, and a slow Skyhook delays no other', async () => {
  setNode('n1', nodeReporting('n1', { status: 'in_progress' }))
  api.fault(({ path, method }) => method === 'POST' && path === leasesPath, { kind: 'refuse', code: 403 }, 100)
  api.fault(({ path }) => path === `${skyhooksPath}/slow/status`, { kind: 'silent' }, 100)
  put('slow')
  put('demo')
  await eventually(() => expect(status()?.status).toBe('in_progress'))
  await eventually(() => expect(failed).not.toEqual([]))
})

test('a Skyhook that cannot be counted is retried with growing pauses and does not stop the others', async () => {
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
    await pass(50)
  }
  expect([tries > 0, tries < 5]).toEqual([true, true])
  expect(uncounted).toHaveLength(tries)
  expect(String(uncounted[0])).toContain('a form that nobody thought of')
  deliver('broken')
  await eventually(() => expect(status('broken')?.status).toBe('waiting'), 10_000)
})

test('a deleted Skyhook is forgotten', async () => {
  put()
  await eventually(() => expect(statusWrites()).toBe(1))
  const object = skyhooks.get('demo') as Skyhook & KubeObject
  api.remove(skyhooksPath, 'demo')
  skyhooks.delete('demo')
  census.skyhooksChanged([{ type: 'deleted', key: 'demo', object }])
  setNode('n1', nodeReporting('n1'))
  census.enqueueAll()
  await pass(200)
  expect(statusWrites()).toBe(1)
})
