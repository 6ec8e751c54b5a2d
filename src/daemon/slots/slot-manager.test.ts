import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/fake-api-server.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { ledgerAnnotation } from '../../lease/ledger.ts'
import { ledgerLabels, ledgerName, skyhookScope, slotLabels } from '../../lease/names.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { InterruptionBudget, Skyhook } from '../../schemas/skyhook.ts'
import { known, type OwnSlot, type SkyhookView } from '../../stages/model/snapshot.ts'
import { createFleetSize } from '../state/fleet-size.ts'
import { createLog } from '../telemetry/log.ts'
import { followOwnSlots, type OwnSlots } from './own-slots.ts'
import { createSlotLine } from './slot-line.ts'
import { createSlotManager, type SlotManager } from './slot-manager.ts'
import { type Budget, budgetOf } from '../../schemas/budget.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const nodesPath = '/api/v1/nodes'
const runtimeRequiredTaint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
const interrupting = { fake: { version: '1.0.0', image: 'r/fake', interrupt: { type: 'reboot' } } }

let api: FakeApiServer
let transport: KubeTransport
let clock: VirtualClock
let views: SkyhookView[]
let nodes: Map<string, KubernetesNode | undefined>
let acquired: number[]
let released: string[]
let messages: string[]
let wakes: number
let stopping: AbortController
let defaultBudget: Budget
let first: TestedManager
let second: TestedManager

/** A node's manager with what it knows of its slots. */
type TestedManager = SlotManager & Pick<OwnSlots, 'held' | 'untilKnown'>

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath, skyhooksPath, nodesPath])
  transport = api.connect()
  clock = createVirtualClock()
  stopping = new AbortController()
  views = []
  acquired = []
  released = []
  messages = []
  wakes = 0
  defaultBudget = {}
  nodes = new Map()
  for (const name of ['n1', 'n2']) nodes.set(name, nodeOf(name))
  first = managerOf('n1')
  second = managerOf('n2')
  await first.untilKnown(stopping.signal)
  await second.untilKnown(stopping.signal)
})
afterEach(async () => {
  stopping.abort()
  transport.close()
  await api.stop()
})

const nodeOf = (name: string, labels: Record<string, string> = {}): KubernetesNode => ({
  metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels },
})

/** Its views have `defaultBudget`, whatever default its agent has. */
function managerOf(name: string, ownDefault: Budget = defaultBudget): TestedManager {
  const leases: Leases = { transport, namespace: 'skyhook', clock }
  const node = (): KubernetesNode | undefined => nodes.get(name)
  const random = createSeededRandom(1)
  const [skyhooks, journal] = [() => known(views), () => emptyJournal(`${name}-uid`)]
  const { signal } = stopping
  const ownSlots = followOwnSlots({
    leases,
    nodeName: name,
    node,
    skyhooks,
    journal,
    clock,
    random,
    wake: () => void wakes++,
    onFact: () => undefined,
    signal,
  })
  const line = createSlotLine({
    leases,
    nodeUid: () => `${name}-uid`,
    skyhooks,
    fleet: createFleetSize(2),
    random: { number: () => 0, hex: () => '' },
    onTurn: () => undefined,
    onNear: () => undefined,
    onCountMissing: () => undefined,
    signal,
  })
  const manager = createSlotManager({
    defaultBudget: ownDefault,
    leases,
    ownSlots,
    line,
    runtimeRequiredTaint,
    node,
    bootId: () => 'boot',
    skyhooks,
    journal,
    clock,
    random,
    log: {
      ...createLog('silent', {}),
      info: (_, message) => void messages.push(message),
      warn: (_, message) => void messages.push(message),
    },
    signal,
    onReleased: (phase, seconds) => void released.push(`${phase} ${seconds}`),
    onAcquired: (seconds) => void acquired.push(seconds),
  })
  return { ...manager, held: ownSlots.held, untilKnown: ownSlots.untilKnown }
}

function putSkyhook(spec: object = {}, metadata: object = {}): SkyhookView {
  const stored = api.put(skyhooksPath, {
    metadata: { name: 's', generation: 1, ...metadata },
    spec: { interruptionBudget: { count: 1 }, packages: {}, ...spec },
  }) as unknown as Skyhook
  const budget = budgetOf(stored.spec, defaultBudget)
  const view = { metadata: stored.metadata, spec: stored.spec, budget, stale: false }
  views = [view]
  return view
}

function heldBy(manager: TestedManager): OwnSlot {
  const held = manager.held()
  const [slot] = held.known ? held.value : []
  if (!slot) throw new Error('no slot is held')
  return slot
}
const isHolding = (manager: TestedManager): boolean => {
  const held = manager.held()
  return held.known && held.value.length > 0
}
const leaseCount = (): number =>
  new Set(
    api.requests
      .flatMap(({ method, path, body }) =>
        method === 'POST' && path === leasesPath ? [(body as { metadata: { name: string } }).metadata.name] : [],
      )
      .filter((name) => api.get(leasesPath, name)),
  ).size

test('the held slots are unknown until the Leases are listed', async () => {
  const fresh = managerOf('n3')
  expect(fresh.held()).toMatchObject({ known: false })
  nodes.set('n3', nodeOf('n3'))
  await fresh.untilKnown(stopping.signal)
  expect(fresh.held()).toEqual(known([]))
})

test('a load that fails leaves the held slots unknown', async () => {
  const fresh = managerOf('n1')
  api.fault(({ path }) => path === leasesPath, { kind: 'status', status: 500 }, 10)
  await expect(fresh.untilKnown(stopping.signal)).rejects.toThrow('injected')
  expect(fresh.held().known).toBe(false)
})

test('a node without a Node object requests nothing', async () => {
  const view = putSkyhook()
  nodes.set('n1', undefined)
  const requestCount = api.requests.length
  await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('no Node of this name')
  expect(api.requests).toHaveLength(requestCount)
})

test('a granted slot is held unconfirmed, and the wait is measured from the first denial', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  expect(heldBy(first)).toMatchObject({ skyhook: 's', skyhookUid: view.metadata.uid, ownership: 'owned' })
  expect(acquired).toEqual([0])
  await second.acquire(view, 'cordoning', false)
  expect(second.denials().get('s')).toMatchObject({
    message: 'the budget of 1 node is used up',
    sinceMs: clock.steadyMs(),
    nextRequestAtMs: clock.steadyMs() + 30_000,
  })
  await clock.advance(7_000)
  await first.release(heldBy(first))
  await second.acquire(view, 'cordoning', false)
  expect([isHolding(first), isHolding(second), second.denials().size]).toEqual([false, true, 0])
  expect(acquired).toEqual([0, 7])
  expect(released).toEqual(['cordoning 7'])
})

test('a Skyhook that asks for no slot any more does not wait', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  const isFollowed = (): boolean => api.openWatches() > 2 // those of own slots
  await vi.waitFor(() => expect(isFollowed()).toBe(true))
  second.keepWaiting(new Set(['s']))
  expect([second.denials().size, isFollowed()]).toEqual([1, true])
  second.keepWaiting(new Set())
  expect(second.denials().size).toBe(0)
  await vi.waitFor(() => expect(isFollowed()).toBe(false))
})

test('a request without an answer fails and is not denied', async () => {
  const view = putSkyhook()
  api.fault(({ path }) => path === leasesPath, { kind: 'reset' }, 10)
  await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown whether a slot was granted')
  expect(first.denials().size).toBe(0)
})

describe('a request for an index that the budget does not have any more', () => {
  /** One of two slots, the second: the API server answers the request for it with this status. */
  async function requestSecondIndex(status: number): Promise<SlotManager & Pick<OwnSlots, 'held'>> {
    const view = putSkyhook({ interruptionBudget: { count: 2 } })
    api.fault(({ method }) => method === 'POST', { kind: 'status', status }, 1)
    const asking = managerOf('n3') // picks the second by the hash of its uid
    nodes.set('n3', nodeOf('n3'))
    await asking.untilKnown(stopping.signal)
    await expect(asking.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown whether a slot was granted')
    const names = api.requests.flatMap(({ method, body }) =>
      method === 'POST' ? [(body as { metadata: { name: string } }).metadata.name] : [],
    )
    expect(names).toEqual([expect.stringMatching(/slot-1$/)])
    return asking
  }

  test('a refused request leaves no doubt: another index is taken', async () => {
    const asking = await requestSecondIndex(429)
    await asking.acquire(putSkyhook({ interruptionBudget: { count: 1 } }), 'cordoning', false)
    expect(asking.denials().size).toBe(0)
    expect(asking.held()).toMatchObject({ known: true, value: [{ ownership: 'owned' }] })
  })

  test('an unanswered request is repeated when the doubt is over, not whenever others are', async () => {
    const asking = await requestSecondIndex(504)
    const view = putSkyhook({ interruptionBudget: { count: 1 } })
    await clock.advance(50_000)
    await asking.acquire(view, 'cordoning', false)
    expect(asking.denials().get('s')).toMatchObject({
      message: 'the API server has not answered whether it created the slot',
      nextRequestAtMs: clock.steadyMs() + 10_000,
    })
    await clock.advance(10_000)
    await asking.acquire(view, 'cordoning', false)
    expect(asking.held()).toMatchObject({ known: true, value: [{ ownership: 'owned' }] })
  })
})

test('a slot that another node took first is requested again after 200 ms while another one is free', async () => {
  const view = putSkyhook({ interruptionBudget: { count: 2 } })
  api.fault(({ method, path }) => method === 'POST' && path === leasesPath, {
    kind: 'status',
    status: 409,
    reason: 'AlreadyExists',
  })
  await first.acquire(view, 'cordoning', false)
  expect(first.denials().get('s')).toMatchObject({ nextRequestAtMs: clock.steadyMs() + 200 })
})

test('a recovery slot is granted beyond the budget', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.createRecovery(view, 'interrupting', 'skyhook')
  expect(heldBy(second)).toMatchObject({ ownership: 'owned', phase: 'interrupting' })
  expect(messages).toEqual(['node is mid-change without a slot, created a recovery slot'])
})

test('a recovery slot that is deleted again and again is created after growing pauses', async () => {
  const view = putSkyhook()
  const createdAtS: number[] = []
  const startMs = clock.steadyMs()
  for (let passedMs = 0; passedMs < 40_000; passedMs += 500) {
    const dueAtMs = first.denials().get('s')?.nextRequestAtMs ?? 0
    if (dueAtMs <= clock.steadyMs()) await first.createRecovery(view, 'interrupting', 'skyhook')
    const { value: held = [] } = first.held() as { value?: readonly OwnSlot[] }
    if (held.length > 0) createdAtS.push((clock.steadyMs() - startMs) / 1_000)
    for (const slot of held) {
      api.remove(leasesPath, slot.lease)
      await first.renew(slot, 'interrupting') // and finds it lost
    }
    await clock.advance(500)
  }
  expect(createdAtS).toEqual([0, 1, 3, 7, 15, 31])
})

test('a recovery slot that was refused says why, also after its denial was forgotten', async () => {
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'status', status: 403, reason: 'Forbidden' }, 10)
  await first.createRecovery(view, 'interrupting', 'skyhook')
  const refusal = first.denials().get('s')?.message
  first.keepWaiting(new Set())
  await first.createRecovery(view, 'interrupting', 'skyhook')
  expect([refusal, first.denials().get('s')?.message]).toEqual([expect.stringContaining('rejected'), refusal])
})

test('a recovery slot that is put off is a denial that says why, and that no free slot of others ends', async () => {
  const view = putSkyhook()
  for (let round = 0; round < 2; round++) {
    await first.createRecovery(view, 'interrupting', 'skyhook')
    const { value: held = [] } = first.held() as { value?: readonly OwnSlot[] }
    for (const slot of held) {
      api.remove(leasesPath, slot.lease)
      await first.renew(slot, 'interrupting')
    }
  }
  expect(first.denials().get('s')).toMatchObject({
    message: 'the slot was deleted soon after the node took it',
    nextRequestAtMs: clock.steadyMs() + 1_000,
    waitsFor: 'recovery',
  })
  expect(first.requestNow('s')).toBe(false)
})

test('a recovery slot that the API server rejects is a denial with its answer, repeated after growing pauses', async () => {
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'status', status: 403, reason: 'Forbidden' }, 10)
  const pausesMs: number[] = []
  for (let round = 0; round < 3; round++) {
    await first.createRecovery(view, 'interrupting', 'skyhook')
    const { message = '', nextRequestAtMs = 0 } = first.denials().get('s') ?? {}
    expect(message).toContain('the API server rejected the slot')
    pausesMs.push(nextRequestAtMs - clock.steadyMs())
    await clock.advance(nextRequestAtMs - clock.steadyMs())
  }
  expect(pausesMs).toEqual([1_000, 2_000, 4_000])
})

test('a slot that the API server rejects is a denial with its answer, repeated after growing pauses', async () => {
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'status', status: 403, reason: 'Forbidden' }, 3)
  for (const longestMs of [1_000, 2_000, 4_000]) {
    await first.acquire(view, 'working', false)
    const { message = '', nextRequestAtMs = 0 } = first.denials().get('s') ?? {}
    expect(message).toContain('the API server rejected the slot')
    const pauseMs = nextRequestAtMs - clock.steadyMs()
    expect([pauseMs <= longestMs, pauseMs >= 0.8 * longestMs]).toEqual([true, true])
  }
  await first.acquire(view, 'working', false)
  expect(isHolding(first)).toBe(true)
})

test('a recovery slot that gets no answer is an error', async () => {
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'reset' }, 10)
  await expect(first.createRecovery(view, 'interrupting', 'skyhook')).rejects.toThrow('recovery slot')
  expect(isHolding(first)).toBe(false)
})

const listCount = (): number =>
  api.requests.filter(({ method, path, query }) => method === 'GET' && path === leasesPath && !query.has('watch'))
    .length

test('a slot is confirmed by one read of the Skyhook that was admitted', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await clock.advance(1_000)
  const before = listCount()
  await first.confirm(heldBy(first), view)
  const admittedUnder = { generation: view.metadata.generation }
  expect(heldBy(first)).toMatchObject({ ownership: 'confirmed', admittedUnder, renewedAtMs: clock.steadyMs() })
  expect(listCount()).toBe(before)
})

test.each<[string, { interruptionBudget?: InterruptionBudget }, Budget?]>([
  ['of an earlier process', {}],
  ['under a percentage', { interruptionBudget: { percent: 100 } }],
  ['under a percentage by default', { interruptionBudget: {} }, { percent: 100 }],
])('a slot %s is confirmed by a second LIST', async (_, spec, byDefault = {}) => {
  defaultBudget = byDefault
  first = managerOf('n1')
  await first.untilKnown(stopping.signal)
  const view = putSkyhook(spec)
  const skyhook = { name: 's', uid: view.metadata.uid }
  const counted = {
    v: 1,
    skyhookUID: skyhook.uid,
    selectorHash: selectorHash(undefined),
    waiters: 0,
    generation: 1,
    compartments: { '': { matched: 1, completed: 0 } },
  }
  api.put(leasesPath, {
    metadata: {
      name: ledgerName(skyhook),
      labels: ledgerLabels(skyhook),
      annotations: { [ledgerAnnotation]: JSON.stringify(counted) },
    },
  })
  await first.acquire(view, 'cordoning', false)
  const later = 'interruptionBudget' in spec ? first : managerOf('n1')
  if (later !== first) await later.untilKnown(stopping.signal)
  const before = listCount()
  await later.confirm(heldBy(later), view)
  expect([heldBy(later).ownership, listCount()]).toEqual(['confirmed', before + 1])
})

test('a Skyhook that names no budget has that of the defaults, at its admission and at its confirmation', async () => {
  defaultBudget = { count: 1 }
  const [one, other] = [managerOf('n1'), managerOf('n2')]
  for (const manager of [one, other]) await manager.untilKnown(stopping.signal)
  const view = putSkyhook({ interruptionBudget: {} })
  await one.acquire(view, 'cordoning', false)
  await other.acquire(view, 'cordoning', false)
  const before = listCount()
  await one.confirm(heldBy(one), view)
  expect([heldBy(one).ownership, listCount() - before]).toEqual(['confirmed', 0])
  expect([isHolding(other), other.denials().get('s')?.message]).toEqual([false, 'the budget of 1 node is used up'])
})

test('a slot that the budget of this moment does not grant is given back', async () => {
  await first.acquire(putSkyhook(), 'cordoning', false)
  const view = putSkyhook({ interruptionBudget: { count: 0 } }, { generation: 2 })
  await first.confirm(heldBy(first), view)
  expect(isHolding(first)).toBe(false)
  expect(leaseCount()).toBe(0)
  expect(first.denials().get('s')?.message).toBe('the budget fell to 0 while 1 slot was held')
  expect(messages).toEqual(['slot released before work started'])
  expect(released).toHaveLength(1)
})

test.each([
  ['a newer generation', { generation: 2 }, 'Skyhook s has changed, waiting to see its new spec'],
  ['a pause', { annotations: { 'skyhook.nvidia.com/pause': 'true' } }, 'Skyhook s was paused'],
  ['a disabled Skyhook', { annotations: { 'skyhook.nvidia.com/disable': 'true' } }, 'Skyhook s was disabled'],
  ['a deletion', undefined, 'Skyhook s was deleted'],
])(
  '%s that the watch does not show yet takes the slot back, and each time for longer',
  async (_, metadata, message) => {
    const view = putSkyhook()
    const delays: number[] = []
    for (let attempt = 0; attempt < 8; attempt++) {
      await first.acquire(view, 'cordoning', false)
      if (metadata) putSkyhook({}, metadata)
      else api.remove(skyhooksPath, 's')
      await first.confirm(heldBy(first), view)
      const denial = first.denials().get('s')
      expect([isHolding(first), leaseCount(), denial?.message]).toEqual([false, 0, message])
      delays.push((denial?.nextRequestAtMs ?? 0) - clock.steadyMs())
      expect(first.requestNow('s')).toBe(false) // the slot that it has just released changes nothing
    }
    expect(delays[0]).toBeGreaterThanOrEqual(800)
    expect(delays[3]).toBeGreaterThan(4_000)
    expect(Math.max(...delays)).toBeLessThanOrEqual(60_000)
  },
)

test('a slot that somebody deleted is in doubt, and lost at its confirmation', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.remove(leasesPath, heldBy(first).lease)
  await vi.waitFor(() => expect(heldBy(first).ownership).toBe('seen'))
  await first.confirm(heldBy(first), view)
  expect([isHolding(first), first.denials().has('s'), released.length]).toEqual([false, true, 1])
})

test('a renewal writes the phase and the packages that are not complete', async () => {
  const view = putSkyhook({ packages: interrupting })
  await first.acquire(view, 'cordoning', false)
  await clock.advance(60_000)
  await first.renew(heldBy(first), 'interrupting')
  expect(heldBy(first)).toMatchObject({ phase: 'interrupting', renewedAtMs: clock.steadyMs() })
  expect(JSON.stringify(api.get(leasesPath, heldBy(first).lease))).toContain('fake:1.0.0')
})

test('a slot that somebody deleted is lost at its renewal', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.remove(leasesPath, heldBy(first).lease)
  await first.renew(heldBy(first), 'cordoning')
  expect([isHolding(first), messages]).toEqual([false, ['slot lost']])
})

test('a renewal without an answer is an error and keeps the slot', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'reset' }, 20)
  await expect(first.renew(slot, 'cordoning')).rejects.toThrow('was not renewed')
  expect(isHolding(first)).toBe(true)
})

test('a report is true only while the slot is ours', async () => {
  const view = putSkyhook()
  expect(await first.report(view.metadata.uid, 'rebooting')).toBe(false)
  await first.acquire(view, 'cordoning', false)
  const { report } = first // nothing depends on how it is called
  expect(await report(view.metadata.uid, 'rebooting')).toBe(true)
  expect(heldBy(first).phase).toBe('rebooting')
  api.remove(leasesPath, heldBy(first).lease)
  expect(await report(view.metadata.uid, 'rebooting')).toBe(false)
})

test('a release without an answer keeps the slot', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'reset' }, 20)
  await expect(first.release(slot)).rejects.toThrow('was not released')
  expect([isHolding(first), released]).toEqual([true, []])
})

test('nothing goes on under a slot whose deletion is under way', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await first.confirm(heldBy(first), view)
  api.fault(({ method }) => method === 'DELETE', { kind: 'slow', ms: 100 }, 1)
  const deletion = first.release(heldBy(first))
  expect(heldBy(first).ownership).toBe('releasing')
  await first.confirm(heldBy(first), view)
  expect(heldBy(first).ownership).toBe('releasing')
  await deletion
  expect(isHolding(first)).toBe(false)
})

test('a confirmation that a deletion overtakes does not count', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.fault(({ method, path }) => method === 'GET' && path.startsWith(skyhooksPath), { kind: 'slow', ms: 50 }, 1)
  const confirmation = first.confirm(heldBy(first), view)
  api.fault(({ method }) => method === 'DELETE', { kind: 'slow', ms: 200 }, 1)
  const deletion = first.release(heldBy(first))
  await confirmation
  expect(heldBy(first).ownership).toBe('releasing')
  await deletion
})

test('a DELETE that is carried out late does not take a slot that was confirmed meanwhile', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.fault(({ method }) => method === 'DELETE', { kind: 'reset' }, 1)
  await expect(first.release(heldBy(first))).rejects.toThrow('was not released')
  const late = api.requests.find(({ method }) => method === 'DELETE')
  await first.confirm(heldBy(first), view)
  expect(heldBy(first).ownership).toBe('confirmed')
  await expect(transport.json('DELETE', late?.path ?? '', { body: late?.body })).rejects.toThrow('precondition')
  expect(api.get(leasesPath, heldBy(first).lease)).toBeDefined()
})

test('an agent that starts again sees its slot, and does not trust it before an answer', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await first.confirm(heldBy(first), view)
  const restarted = managerOf('n1')
  await restarted.untilKnown(stopping.signal)
  expect(heldBy(restarted)).toMatchObject({ skyhook: 's', ownership: 'seen', renewedAtMs: 0 })
  expect(restarted.kinds()).toEqual([{ phase: 'cordoning', kind: 'slot' }])
  expect(restarted.grantedAtMs()).toEqual([clock.wallMs()])
})

test('a freed slot makes only a waiting Skyhook ask at once', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  expect([first.requestNow('s'), second.requestNow('s')]).toEqual([false, true])
  expect(second.denials().get('s')?.nextRequestAtMs).toBe(0)
})

describe('an unanswered creation', () => {
  test('an unanswered creation is repeated with the same name, also when another would be picked now', async () => {
    const view = putSkyhook({ interruptionBudget: { count: 6 } })
    api.fault(({ method }) => method === 'POST', { kind: 'reset' }, 1)
    api.fault(({ method, path }) => method === 'GET' && path.startsWith(`${leasesPath}/`), { kind: 'reset' }, 10)
    await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown')
    for (const name of ['m1', 'm2']) {
      nodes.set(name, nodeOf(name))
      await managerOf(name).acquire(view, 'cordoning', false)
    }
    await first.acquire(view, 'cordoning', false)
    const createdNames = api.requests.flatMap(({ method, body }) =>
      method === 'POST' ? [(body as { metadata: { name: string } }).metadata.name] : [],
    )
    expect(createdNames.at(-1)).toBe(createdNames[0])
    expect(heldBy(first).lease).toBe(createdNames[0])
  })

  test('an unanswered creation holds no other name back once another node has it', async () => {
    const view = putSkyhook({ interruptionBudget: { count: 6 } })
    api.fault(({ method }) => method === 'POST', { kind: 'reset' }, 1)
    api.fault(({ method, path }) => method === 'GET' && path.startsWith(`${leasesPath}/`), { kind: 'reset' }, 10)
    await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown')
    const [created] = api.requests.flatMap(({ method, body }) =>
      method === 'POST' ? [(body as { metadata: { name: string; labels: object } }).metadata] : [],
    )
    api.put(leasesPath, {
      metadata: { name: created?.name ?? '', labels: created?.labels },
      spec: { holderIdentity: 'other' },
    })
    await first.acquire(view, 'cordoning', false)
    expect(heldBy(first).lease).not.toBe(created?.name)
  })
})

describe('the watch of own slots', () => {
  const slotOfNode = (name: string, nodeUid: string): object => ({
    metadata: {
      name,
      labels: slotLabels(skyhookScope({ name: 's', uid: views[0]?.metadata.uid ?? '' }), 'slot', 'n1'),
      annotations: { 'skyhook.nvidia.com/node-uid': nodeUid, 'skyhook.nvidia.com/phase': 'working' },
    },
    spec: { holderIdentity: 'n1' },
  })

  test('the watch shows a slot that appears without a request, and wakes the loop', async () => {
    putSkyhook()
    await vi.waitFor(() => expect(api.openWatches()).toBe(2))
    api.put(leasesPath, slotOfNode('late', 'n1-uid') as never)
    await vi.waitFor(() => expect(isHolding(first)).toBe(true))
    expect(heldBy(first)).toMatchObject({ skyhook: 's', ownership: 'seen', isFormer: false })
    expect([wakes > 0, isHolding(second)]).toEqual([true, false])
  })

  test('the watch shows a slot of an earlier registration, and it can be released', async () => {
    putSkyhook()
    await vi.waitFor(() => expect(api.openWatches()).toBe(2))
    api.put(leasesPath, slotOfNode('former', 'n1-before') as never)
    await vi.waitFor(() => expect(isHolding(first)).toBe(true))
    expect(heldBy(first).isFormer).toBe(true)
    await first.release(heldBy(first))
    expect([isHolding(first), api.get(leasesPath, 'former')]).toEqual([false, undefined])
  })
})

describe('the control plane', () => {
  const heldScopes = (manager: TestedManager): readonly string[] => {
    const held = manager.held()
    return held.known ? held.value.map(({ scope }) => scope).toSorted() : []
  }
  const guardOf = (manager: TestedManager): OwnSlot => {
    const held = manager.held()
    const slot = held.known ? held.value.find(({ scope }) => scope === 'control-plane') : undefined
    if (!slot) throw new Error('the control-plane slot is not held')
    return slot
  }
  beforeEach(() => {
    for (const name of ['n1', 'n2']) nodes.set(name, nodeOf(name, { 'node-role.kubernetes.io/control-plane': '' }))
    api.serve('/readyz')
  })

  test('one node at a time holds its slot, which is taken together with that of the Skyhook', async () => {
    const view = putSkyhook({ interruptionBudget: { count: 2 } })
    await first.acquire(view, 'cordoning', true)
    expect([heldScopes(first), leaseCount()]).toEqual([['control-plane', 'skyhook'], 2])
    await second.acquire(view, 'cordoning', true)
    expect([heldScopes(second), leaseCount()]).toEqual([[], 2])
    expect(second.denials().get('s')).toMatchObject({
      waitsFor: 'control-plane',
      message: 'another node of the control plane is out of service',
    })
    await first.release(guardOf(first))
    await second.acquire(view, 'cordoning', true)
    expect(heldScopes(second)).toEqual(['control-plane', 'skyhook'])
  })

  test('its slot is not created while the budget of the Skyhook is used up', async () => {
    const view = putSkyhook()
    await first.acquire(view, 'cordoning', false)
    await second.acquire(view, 'cordoning', true)
    expect([leaseCount(), second.denials().get('s')?.waitsFor]).toEqual([1, undefined])
  })

  test('its slot is asked for by work under way, and created for a node that is out of service', async () => {
    const view = putSkyhook({ interruptionBudget: { count: 2 } })
    await first.acquireControlPlane(view, 'working')
    await second.acquireControlPlane(view, 'working')
    expect([heldScopes(first), heldScopes(second)]).toEqual([['control-plane'], []])
    await second.createRecovery(view, 'interrupting', 'control-plane')
    expect(heldScopes(second)).toEqual(['control-plane'])
  })

  test('its slot that another node is faster to take is asked for again when that one releases it', async () => {
    const view = putSkyhook()
    api.fault(({ method }) => method === 'POST', { kind: 'status', status: 409, reason: 'AlreadyExists' }, 1)
    await first.acquireControlPlane(view, 'working')
    const { message, nextRequestAtMs = 0, waitsFor } = first.denials().get('s') ?? {}
    expect([message, waitsFor]).toEqual(['another node of the control plane is out of service', 'control-plane'])
    expect(nextRequestAtMs - clock.steadyMs()).toBeGreaterThanOrEqual(30_000)
  })

  test('its slot that the API server rejects is asked for again soon, and nobody is said to be out of service', async () => {
    const view = putSkyhook()
    const isGuard = ({ method, body }: { method: string; body: unknown }): boolean =>
      method === 'POST' && JSON.stringify(body).includes('control-plane')
    for (const ask of [
      async () => await first.acquire(view, 'cordoning', true),
      async () => await first.acquireControlPlane(view, 'working'),
    ]) {
      api.fault(isGuard, { kind: 'status', status: 403, reason: 'Forbidden' }, 1)
      await ask()
      const { message, nextRequestAtMs = 0, waitsFor } = first.denials().get('s') ?? {}
      expect(message).toContain('the API server rejected the slot')
      expect([waitsFor, nextRequestAtMs - clock.steadyMs() <= 2_000]).toEqual(['control-plane', true])
    }
  })

  test('its slot goes back only while the API server is ready', async () => {
    const view = putSkyhook()
    await first.acquireControlPlane(view, 'working')
    api.fault(({ path }) => path === '/readyz', { kind: 'status', status: 500 }, 1)
    await expect(first.release(guardOf(first))).rejects.toThrow('injected')
    expect([heldScopes(first), guardOf(first).ownership]).toEqual([['control-plane'], 'seen'])
    await first.renew(guardOf(first), 'working')
    expect(guardOf(first).ownership).toBe('owned')
  })

  test('nothing begins under its slot while the API server is asked whether it is ready', async () => {
    await first.acquireControlPlane(putSkyhook(), 'working')
    api.fault(({ path }) => path === '/readyz', { kind: 'slow', ms: 100 }, 1)
    const released = first.release(guardOf(first))
    expect(guardOf(first).ownership).toBe('releasing')
    await released
    expect(heldScopes(first)).toEqual([])
  })

  test('an interrupt is reported in both slots, and not allowed without the one of the control plane', async () => {
    const view = putSkyhook()
    await first.acquire(view, 'cordoning', false)
    expect(await first.report(view.metadata.uid, 'rebooting')).toBe(false)
    await first.acquireControlPlane(view, 'working')
    expect(await first.report(view.metadata.uid, 'rebooting')).toBe(true)
    expect(guardOf(first).phase).toBe('rebooting')
  })
})

describe('nodes that join the cluster', () => {
  const kindsOf = (manager: TestedManager): string[] => manager.kinds().map(({ kind }) => kind)
  beforeEach(() => putTaints('n1', [runtimeRequiredTaint]))
  const putTaints = (name: string, taints: readonly object[]): void =>
    void api.put(nodesPath, { metadata: { name, uid: `${name}-uid` }, spec: { taints } })

  /** A manager of another node. */
  const managerBeside = async (name: string): Promise<TestedManager> => {
    nodes.set(name, nodeOf(name))
    const manager = managerOf(name)
    await manager.untilKnown(stopping.signal)
    return manager
  }

  test('joining nodes have a budget of their own beside that of the others', async () => {
    const view = putSkyhook()
    const [third, fourth] = [await managerBeside('n3'), await managerBeside('n4')]
    await first.acquire(view, 'working', false)
    await second.acquire(view, 'working', false, true)
    await third.acquire(view, 'working', false, true)
    await fourth.acquire(view, 'working', false)
    expect([first, second, third, fourth].map(kindsOf)).toEqual([['slot'], ['bootstrap'], [], []])
    expect([heldBy(second).isBootstrap, heldBy(first).isBootstrap]).toEqual([true, undefined])
    expect([third.denials().get('s')?.message, fourth.denials().get('s')?.message]).toEqual([
      'the budget of 1 joining node is used up',
      'the budget of 1 node is used up',
    ])
    await second.release(heldBy(second))
    await third.acquire(view, 'working', false, true)
    expect(kindsOf(third)).toEqual(['bootstrap'])
  })

  test('a joining node starts under a count of the spec while the budget is 0', async () => {
    await first.acquire(
      putSkyhook({ interruptionBudget: { count: 0 }, bootstrap: { count: 1 } }),
      'working',
      false,
      true,
    )
    await second.acquire(views[0]!, 'working', false)
    expect([kindsOf(first), kindsOf(second)]).toEqual([['bootstrap'], []])
  })

  test('no joining node starts under a budget of 0, and none asks', async () => {
    const before = listCount()
    await first.acquire(putSkyhook({ interruptionBudget: { count: 0 } }), 'working', false, true)
    expect([kindsOf(first), first.denials().get('s')?.message, listCount()]).toEqual([
      [],
      'the budget for joining nodes is 0',
      before,
    ])
  })

  test('a joining node without any budget is counted like all others', async () => {
    await first.acquire(putSkyhook({ interruptionBudget: {} }), 'working', false, true)
    expect(kindsOf(first)).toEqual(['unlimited'])
  })

  test.each([
    ['of the census, by a second LIST', {}, 1],
    ['of the spec, without another LIST', { bootstrap: { count: 2 } }, 0],
  ])('the slot of a joining node is confirmed by the count %s', async (_, spec, lists) => {
    const view = putSkyhook(spec)
    await first.acquire(view, 'working', false, true)
    const before = listCount()
    await first.confirm(heldBy(first), view)
    expect([heldBy(first).ownership, listCount() - before]).toEqual(['confirmed', lists])
  })

  test.each([
    [
      'whose taint is gone',
      () => putTaints('n1', []),
      'Node n1 has lost the taint skyhook.nvidia.com, it joins no more',
    ],
    ['whose Node is gone', () => api.remove(nodesPath, 'n1'), 'Node n1 was deleted'],
  ])('a joining node %s before its watch shows it gives its slot back', async (_, change, message) => {
    const view = putSkyhook({ bootstrap: { count: 2 } })
    await first.acquire(view, 'working', false, true)
    change()
    await first.confirm(heldBy(first), view)
    expect([isHolding(first), leaseCount(), first.denials().get('s')?.message]).toEqual([false, 0, message])
  })

  test('the slot of a joining node is given back when its budget falls', async () => {
    await first.acquire(putSkyhook(), 'working', false, true)
    const view = putSkyhook({ bootstrap: { count: 0 } }, { generation: 2 })
    await first.confirm(heldBy(first), view)
    expect([isHolding(first), leaseCount()]).toEqual([false, 0])
  })
})
