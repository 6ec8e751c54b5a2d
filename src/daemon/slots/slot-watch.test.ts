import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/fake-api-server.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhookScope, slotLabels } from '../../lease/names.ts'
import { known, type SkyhookView, type SlotDenial, unknown } from '../../stages/model/snapshot.ts'
import { createSlotWatch, type SlotWatch } from './slot-watch.ts'

const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const view: SkyhookView = {
  metadata: { name: 's', uid: 's-uid', resourceVersion: '1' },
  spec: { interruptionBudget: { count: 1 } } as SkyhookView['spec'],
  stale: false,
}
const scope = skyhookScope(view.metadata)
const slotName = `${scope.hash}.slot-0`

let api: FakeApiServer
let transport: KubeTransport
let clock: VirtualClock
let stopping: AbortController
let denials: Map<string, SlotDenial>
let views: readonly SkyhookView[] | undefined
let requested: string[]
let wakes: number
let watch: SlotWatch

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath])
  transport = api.connect()
  clock = createVirtualClock()
  stopping = new AbortController()
  denials = new Map([['s', { message: 'm', nextRequestAtMs: 1, sinceMs: 0 }]])
  views = [view]
  requested = []
  wakes = 0
  watch = createSlotWatch({
    leases: { transport, namespace: 'skyhook', clock },
    slots: {
      denials: () => denials,
      requestNow: (skyhook) => {
        requested.push(skyhook)
        return denials.has(skyhook)
      },
    },
    skyhooks: () => (views ? known(views) : unknown('not listed')),
    clock,
    random: { number: () => 0.5, hex: () => '' },
    wake: () => void wakes++,
    signal: stopping.signal,
  })
})
afterEach(async () => {
  stopping.abort()
  transport.close()
  await api.stop()
})

const putSlot = (name = slotName): unknown =>
  api.put(leasesPath, {
    metadata: { name, labels: slotLabels(scope, 'slot', 'other') },
    spec: { holderIdentity: 'other' },
  })
/** The watch has seen what the server has. */
async function settle(): Promise<void> {
  await sleep(60)
  await clock.advance(0)
}

test('nothing is watched while nobody waits', async () => {
  denials.clear()
  watch.update()
  await settle()
  expect(api.requests).toEqual([])
})

test('nothing is watched while the Skyhooks are unknown', async () => {
  views = undefined
  watch.update()
  await settle()
  expect(api.requests).toEqual([])
})

test('a wait opens one watch of the scope, however often it is updated', async () => {
  putSlot()
  watch.update()
  watch.update()
  await settle()
  expect(api.openWatches()).toBe(1)
  expect(api.requests[0]?.query.get('labelSelector')).toContain('skyhook.nvidia.com/name=s')
})

test('a taken slot leaves the request where it is', async () => {
  putSlot()
  watch.update()
  await settle()
  await clock.advance(60_000)
  expect([requested, wakes]).toEqual([[], 0])
})

test('a freed slot is requested after a share of the spread of ten waiters', async () => {
  putSlot()
  watch.update()
  await settle()
  api.remove(leasesPath, slotName)
  await settle()
  await clock.advance(74)
  expect(requested).toEqual([])
  await clock.advance(1)
  expect([requested, wakes]).toEqual([['s'], 1])
})

test('a slot that another takes within the spread is not requested', async () => {
  putSlot()
  watch.update()
  await settle()
  api.remove(leasesPath, slotName)
  await settle()
  putSlot()
  await settle()
  await clock.advance(60_000)
  expect(requested).toEqual([])
})

test('a request that nobody waits for any more wakes nobody', async () => {
  watch.update()
  await settle()
  denials.clear()
  await clock.advance(1_000)
  expect([requested, wakes]).toEqual([['s'], 0])
})

test('a wait that is over closes its watch and its timer', async () => {
  watch.update()
  await settle()
  denials.clear()
  watch.update()
  await settle()
  await clock.advance(60_000)
  expect([api.openWatches(), requested]).toEqual([0, []])
})

test('a raised budget counts with the Leases of this moment', async () => {
  putSlot()
  watch.update()
  await settle()
  views = [{ ...view, spec: { interruptionBudget: { count: 2 } } as SkyhookView['spec'] }]
  putSlot() // any change of the scope
  await settle()
  await clock.advance(1_000)
  expect(requested).toEqual(['s'])
})
