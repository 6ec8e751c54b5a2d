import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/fake-api-server.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { known, type OwnSlot, type SkyhookView } from '../../stages/model/snapshot.ts'
import { createLog } from '../telemetry/log.ts'
import { createSlotManager, type SlotManager } from './slot-manager.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const interrupting = { fake: { version: '1.0.0', image: 'r/fake', interrupt: { type: 'reboot' } } }

let api: FakeApiServer
let transport: KubeTransport
let clock: VirtualClock
let views: SkyhookView[]
let nodes: Map<string, KubernetesNode | undefined>
let acquired: number[]
let released: string[]
let messages: string[]
let first: SlotManager
let second: SlotManager

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath, skyhooksPath])
  transport = api.connect()
  clock = createVirtualClock()
  views = []
  acquired = []
  released = []
  messages = []
  nodes = new Map()
  for (const name of ['n1', 'n2']) nodes.set(name, nodeOf(name))
  first = managerOf('n1')
  second = managerOf('n2')
  await first.load(new AbortController().signal)
  await second.load(new AbortController().signal)
})
afterEach(async () => {
  transport.close()
  await api.stop()
})

const nodeOf = (name: string, labels: Record<string, string> = {}): KubernetesNode => ({
  metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels },
})

function managerOf(name: string): SlotManager {
  const leases: Leases = { transport, namespace: 'skyhook', clock }
  return createSlotManager({
    leases,
    node: () => nodes.get(name),
    bootId: () => 'boot',
    skyhooks: () => known(views),
    journal: () => emptyJournal(`${name}-uid`),
    clock,
    log: {
      ...createLog('silent', {}),
      info: (_, message) => void messages.push(message),
      warn: (_, message) => void messages.push(message),
    },
    signal: new AbortController().signal,
    onReleased: (phase, seconds) => void released.push(`${phase} ${seconds}`),
    onAcquired: (seconds) => void acquired.push(seconds),
  })
}

function putSkyhook(spec: object = {}, metadata: object = {}): SkyhookView {
  const stored = api.put(skyhooksPath, {
    metadata: { name: 's', generation: 1, ...metadata },
    spec: { interruptionBudget: { count: 1 }, packages: {}, ...spec },
  }) as unknown as Skyhook
  const view = { metadata: stored.metadata, spec: stored.spec, stale: false }
  views = [view]
  return view
}

function heldBy(manager: SlotManager): OwnSlot {
  const held = manager.held()
  const [slot] = held.known ? held.value : []
  if (!slot) throw new Error('no slot is held')
  return slot
}
const isHolding = (manager: SlotManager): boolean => {
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
  await fresh.load(new AbortController().signal)
  expect(fresh.held()).toEqual(known([]))
})

test('a load that fails leaves the held slots unknown', async () => {
  const fresh = managerOf('n1')
  api.fault(({ path }) => path === leasesPath, { kind: 'status', status: 500 }, 10)
  await expect(fresh.load(new AbortController().signal)).rejects.toThrow('injected')
  expect(fresh.held().known).toBe(false)
})

test('a node without a Node object requests nothing', async () => {
  const view = putSkyhook()
  nodes.set('n1', undefined)
  const requestCount = api.requests.length
  await expect(first.acquire(view, 'cordoning')).rejects.toThrow('no Node of this name')
  expect(api.requests).toHaveLength(requestCount)
})

test('a granted slot is held unconfirmed, and the wait is measured from the first denial', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  expect(heldBy(first)).toMatchObject({ skyhook: 's', skyhookUid: view.metadata.uid, confirmed: false })
  expect(acquired).toEqual([0])
  await second.acquire(view, 'cordoning')
  expect(second.denials().get('s')).toMatchObject({
    message: '1 of 1 slots are held: n1',
    sinceMs: clock.wallMs(),
    nextRequestAtMs: clock.wallMs() + 30_000,
  })
  await clock.advance(7_000)
  await first.release(heldBy(first))
  await second.acquire(view, 'cordoning')
  expect([isHolding(first), isHolding(second), second.denials().size]).toEqual([false, true, 0])
  expect(acquired).toEqual([0, 7])
  expect(released).toEqual(['cordoning 7'])
})

test('a denial names five holders at most', async () => {
  const view = putSkyhook({ interruptionBudget: { count: 6 } })
  for (const name of ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']) {
    nodes.set(name, nodeOf(name))
    await managerOf(name).acquire(view, 'cordoning')
  }
  await first.acquire(view, 'cordoning')
  expect(first.denials().get('s')?.message).toMatch(/^6 of 6 slots are held: (m\d, ){5}…$/)
})

test('a request without an answer fails and is not denied', async () => {
  const view = putSkyhook()
  api.fault(({ path }) => path === leasesPath, { kind: 'reset' }, 10)
  await expect(first.acquire(view, 'cordoning')).rejects.toThrow('it is unknown whether a slot was granted')
  expect(first.denials().size).toBe(0)
})

test('a slot that another node took first is requested again after 200 ms', async () => {
  const view = putSkyhook()
  api.fault(({ method, path }) => method === 'POST' && path === leasesPath, {
    kind: 'status',
    status: 409,
    reason: 'AlreadyExists',
  })
  await first.acquire(view, 'cordoning')
  expect(first.denials().get('s')).toMatchObject({ nextRequestAtMs: clock.wallMs() + 200 })
})

test('a recovery slot is granted beyond the budget and needs no confirmation', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  await second.createRecovery(view, 'interrupting')
  expect(heldBy(second)).toMatchObject({ confirmed: true, phase: 'interrupting' })
  expect(messages).toEqual(['node is mid-change without a slot, created a recovery slot'])
})

test('a recovery slot that gets no answer is an error', async () => {
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'reset' }, 10)
  await expect(first.createRecovery(view, 'interrupting')).rejects.toThrow('recovery slot')
  expect(isHolding(first)).toBe(false)
})

test('a slot is confirmed under the budget of this moment', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  await clock.advance(1_000)
  await first.confirm(heldBy(first), view)
  expect(heldBy(first)).toMatchObject({ confirmed: true, renewedAtMs: clock.wallMs() })
})

test('a slot that the budget of this moment does not grant is given back', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  putSkyhook({ interruptionBudget: { count: 0 } })
  await first.confirm(heldBy(first), view)
  expect(isHolding(first)).toBe(false)
  expect(leaseCount()).toBe(0)
  expect(first.denials().get('s')).toMatchObject({ nextRequestAtMs: clock.wallMs() + 200 })
  expect(messages).toEqual(['slot released before work started'])
  expect(released).toHaveLength(1)
})

test.each([
  ['a newer generation', { generation: 2 }],
  ['a pause', { annotations: { 'skyhook.nvidia.com/pause': 'true' } }],
  ['a disabled Skyhook', { annotations: { 'skyhook.nvidia.com/disable': 'true' } }],
])('%s leaves a slot unconfirmed', async (_, metadata) => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  putSkyhook({}, metadata)
  await first.confirm(heldBy(first), view)
  expect(heldBy(first).confirmed).toBe(false)
})

test('a slot that another took meanwhile is lost at its confirmation', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  const slot = heldBy(first)
  api.remove(leasesPath, slot.lease)
  await first.confirm(slot, view)
  expect([isHolding(first), first.denials().has('s'), released.length]).toEqual([false, true, 1])
})

test('a renewal writes the phase and the packages that are not complete', async () => {
  const view = putSkyhook({ packages: interrupting })
  await first.acquire(view, 'cordoning')
  await clock.advance(60_000)
  await first.renew(heldBy(first), 'interrupting')
  expect(heldBy(first)).toMatchObject({ phase: 'interrupting', renewedAtMs: clock.wallMs() })
  expect(JSON.stringify(api.get(leasesPath, heldBy(first).lease))).toContain('fake:1.0.0')
})

test('a slot that somebody deleted is lost at its renewal', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  api.remove(leasesPath, heldBy(first).lease)
  await first.renew(heldBy(first), 'cordoning')
  expect([isHolding(first), messages]).toEqual([false, ['slot lost']])
})

test('a renewal without an answer is an error and keeps the slot', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'reset' }, 20)
  await expect(first.renew(slot, 'cordoning')).rejects.toThrow('was not renewed')
  expect(isHolding(first)).toBe(true)
})

test('a report is true only while the slot is ours', async () => {
  const view = putSkyhook()
  expect(await first.report(view.metadata.uid, 'rebooting')).toBe(false)
  await first.acquire(view, 'cordoning')
  const { report } = first // nothing depends on how it is called
  expect(await report(view.metadata.uid, 'rebooting')).toBe(true)
  expect(heldBy(first).phase).toBe('rebooting')
  api.remove(leasesPath, heldBy(first).lease)
  expect(await report(view.metadata.uid, 'rebooting')).toBe(false)
})

test('a release without an answer keeps the slot', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'reset' }, 20)
  await expect(first.release(slot)).rejects.toThrow('was not released')
  expect([isHolding(first), released]).toEqual([true, []])
})

test('an agent that starts again finds its slot unconfirmed', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  await first.confirm(heldBy(first), view)
  const restarted = managerOf('n1')
  await restarted.load(new AbortController().signal)
  expect(heldBy(restarted)).toMatchObject({ skyhook: 's', confirmed: false, renewedAtMs: 0 })
  expect(restarted.kinds()).toEqual([{ phase: 'cordoning', kind: 'slot' }])
})

test('a freed slot makes only a waiting Skyhook ask at once', async () => {
  const view = putSkyhook()
  await first.acquire(view, 'cordoning')
  await second.acquire(view, 'cordoning')
  expect([first.requestNow('s'), second.requestNow('s')]).toEqual([false, true])
  expect(second.denials().get('s')?.nextRequestAtMs).toBe(0)
})

test('one control-plane node at a time is interrupted', async () => {
  for (const name of ['n1', 'n2']) nodes.set(name, nodeOf(name, { 'node-role.kubernetes.io/control-plane': '' }))
  const view = putSkyhook({ packages: interrupting, interruptionBudget: { count: 2 } })
  api.serve('/readyz')
  await first.acquire(view, 'cordoning')
  expect([isHolding(first), leaseCount()]).toEqual([true, 2])
  await second.acquire(view, 'cordoning')
  expect([isHolding(second), leaseCount()]).toEqual([false, 2])
  expect(second.denials().get('s')?.message).toContain('control-plane')
  await first.release(heldBy(first))
  expect(leaseCount()).toBe(0)
  await second.acquire(view, 'cordoning')
  expect(isHolding(second)).toBe(true)
})

test('a control-plane node that only adds files takes no second slot', async () => {
  nodes.set('n1', nodeOf('n1', { 'node-role.kubernetes.io/control-plane': '' }))
  const view = putSkyhook({ packages: { fake: { version: '1.0.0', image: 'r/fake' } } })
  await first.acquire(view, 'cordoning')
  expect(leaseCount()).toBe(1)
})
