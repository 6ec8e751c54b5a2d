/** Before the first step, a granted slot is confirmed for the current spec, or released. */
import { expect, test } from 'vitest'
import { leasesPath } from '../../../test/kit/api-server/sample-server.ts'
import { heldBy, isHolding, startSlotManagerScene } from '../../../test/kit/slots/slot-manager-scene.ts'
import { ledgerAnnotation, selectorHash } from '../../lease/ledger.ts'
import { ledgerLabels, ledgerName } from '../../lease/names.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Budget } from '../../schemas/budget.ts'
import { finalizerName, type InterruptionBudget } from '../../schemas/skyhook.ts'

test('a slot is confirmed by one read of the Skyhook that was admitted', async () => {
  const { clock, first, putSkyhook, listCount } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await clock.advance(1_000)
  const before = listCount()
  await first.confirm(heldBy(first), view)
  const admittedUnder = { generation: view.metadata.generation }
  expect(heldBy(first)).toMatchObject({ ownership: 'confirmed', admittedUnder, renewedAtMs: clock.steadyMs() })
  expect(listCount()).toBe(before)
})

type Scene = Awaited<ReturnType<typeof startSlotManagerScene>>

/** The census's counts for the Skyhook. */
function putLedger({ api }: Pick<Scene, 'api'>, uid: string, matched: number): void {
  const skyhook = { name: 's', uid }
  const counted = {
    v: 1,
    skyhookUID: uid,
    selectorHash: selectorHash(undefined),
    waiters: 0,
    generation: 1,
    compartments: { '': { matched, completed: 0 } },
  }
  api.put(leasesPath, {
    metadata: {
      name: ledgerName(skyhook),
      labels: ledgerLabels(skyhook),
      annotations: { [ledgerAnnotation]: JSON.stringify(counted) },
    },
  })
}

test.each<[string, { interruptionBudget?: InterruptionBudget }, Budget?]>([
  ['of an earlier process', {}],
  ['under a percentage', { interruptionBudget: { percent: 100 } }],
  ['under a percentage by default', { interruptionBudget: {} }, { percent: 100 }],
])('a slot %s is confirmed by a second LIST', async (_, spec, defaultBudget = {}) => {
  const { api, first, putSkyhook, readyManagerOf, listCount } = await startSlotManagerScene({ defaultBudget })
  const view = putSkyhook(spec)
  putLedger({ api }, view.metadata.uid, 1)
  await first.acquire(view, 'cordoning', false)
  const later = 'interruptionBudget' in spec ? first : await readyManagerOf('n1')
  const before = listCount()
  await later.confirm(heldBy(later), view)
  expect([heldBy(later).ownership, listCount()]).toEqual(['confirmed', before + 1])
})

/** The census has counted 40 nodes for a tenth of them. */
async function sceneOfTenth(nodes: number) {
  const scene = await startSlotManagerScene()
  const view = scene.putSkyhook({ interruptionBudget: { percent: 10 } })
  putLedger(scene, view.metadata.uid, 40)
  for (let index = 1; index <= nodes; index++) scene.api.put('/api/v1/nodes', { metadata: { name: `n${index}` } })
  return { ...scene, view }
}

test('a percentage is of the nodes that were counted, and of no more than there are', async () => {
  const [large, small] = [await sceneOfTenth(40), await sceneOfTenth(4)]
  for (const { first, second, view } of [large, small]) {
    await first.acquire(view, 'cordoning', false)
    await second.acquire(view, 'cordoning', false)
  }
  expect([isHolding(large.second), isHolding(small.first), isHolding(small.second)]).toEqual([true, true, false])
  expect(small.second.denials().get('s')?.message).toBe('the budget of 1 node is used up')
})

test('a slot is given back if the nodes that its percentage was of are gone before the first step', async () => {
  const { api, first, second, view } = await sceneOfTenth(40)
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  for (let index = 5; index <= 40; index++) await api.connect().json('DELETE', `/api/v1/nodes/n${index}`)
  await first.confirm(heldBy(first), view)
  expect(isHolding(first)).toBe(false)
  expect(first.denials().get('s')?.message).toBe('the budget fell to 1 while 2 slots were held')
})

test.each([
  ['nobody asks how many Nodes there are for a count', { count: 1 }, 0],
  ['a percentage costs one small LIST at the request and one at the confirmation', { percent: 100 }, 2],
])('%s', async (_, interruptionBudget, lists) => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook({ interruptionBudget })
  putLedger({ api }, view.metadata.uid, 1)
  await first.acquire(view, 'cordoning', false)
  await first.confirm(heldBy(first), view)
  expect(api.sent.filter(({ path }) => path === '/api/v1/nodes').map(({ query }) => query)).toEqual(
    Array.from({ length: lists }, () => ({ limit: '1' })),
  )
})

test('a Skyhook that names no budget has that of the defaults, at its admission and at its confirmation', async () => {
  const { first, second, putSkyhook, listCount } = await startSlotManagerScene({ defaultBudget: { count: 1 } })
  const view = putSkyhook({ interruptionBudget: {} })
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  const before = listCount()
  await first.confirm(heldBy(first), view)
  expect([heldBy(first).ownership, listCount() - before]).toEqual(['confirmed', 0])
  expect([isHolding(second), second.denials().get('s')?.message]).toEqual([false, 'the budget of 1 node is used up'])
})

test('a slot that the current budget does not grant is released', async () => {
  const { first, putSkyhook, leaseCount, messages, released } = await startSlotManagerScene()
  await first.acquire(putSkyhook(), 'cordoning', false)
  const view = putSkyhook({ interruptionBudget: { count: 0 } })
  await first.confirm(heldBy(first), view)
  expect(isHolding(first)).toBe(false)
  expect(leaseCount()).toBe(0)
  expect(first.denials().get('s')?.message).toBe('the budget fell to 0 while 1 slot was held')
  expect(messages).toEqual(['slot released before work started'])
  expect(released).toHaveLength(1)
})

test.each<[string, { spec?: object; metadata?: object } | undefined, string]>([
  ['a newer generation', { spec: { priority: 7 } }, 'Skyhook s has changed, waiting to see its new spec'],
  ['a pause', { metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } }, 'Skyhook s was paused'],
  [
    'a disabled Skyhook',
    { metadata: { annotations: { 'skyhook.nvidia.com/disable': 'true' } } },
    'Skyhook s was disabled',
  ],
  ['a deletion', undefined, 'Skyhook s was deleted'],
])('%s that the watch does not show yet takes the slot back, and each time for longer', async (_, edit, message) => {
  const { api, clock, first, putSkyhook, leaseCount } = await startSlotManagerScene()
  const view = putSkyhook()
  const delays: number[] = []
  for (let attempt = 0; attempt < 8; attempt++) {
    await first.acquire(view, 'cordoning', false)
    if (edit) putSkyhook(edit.spec, edit.metadata)
    else if (attempt === 0) api.remove(skyhooksPath, 's')
    await first.confirm(heldBy(first), view)
    const denial = first.denials().get('s')
    expect([isHolding(first), leaseCount(), denial?.message]).toEqual([false, 0, message])
    delays.push((denial?.nextRequestAtMs ?? 0) - clock.steadyMs())
    expect(first.requestNow('s')).toBe(false) // the slot that the node has just released changes nothing
  }
  expect(delays[0]).toBeGreaterThanOrEqual(800)
  expect(delays[3]).toBeGreaterThan(4_000)
  expect(Math.max(...delays)).toBeLessThanOrEqual(60_000)
})

const uninstalling = {
  packages: { a: { version: '1.0.0', image: 'registry.test/a', uninstall: { enabled: true } } },
}

test('no slot is asked for before the Skyhook has the finalizer that its spec asks for', async () => {
  const { clock, first, putSkyhook, listCount, leaseCount } = await startSlotManagerScene()
  const before = listCount()
  await first.acquire(putSkyhook(uninstalling), 'cordoning', false)
  const message = 'Skyhook s asks for an uninstall, waiting for the census to add its finalizer'
  expect([listCount() - before, leaseCount(), first.denials().get('s')]).toMatchObject([0, 0, { message }])
  await clock.advance(1_000)
  await first.acquire(putSkyhook(uninstalling, { finalizers: [finalizerName] }), 'cordoning', false)
  expect([leaseCount(), first.denials().size]).toEqual([1, 0])
})

test('a slot is given back where the Skyhook has lost the finalizer that its spec asks for', async () => {
  const { first, putSkyhook, leaseCount } = await startSlotManagerScene()
  const view = putSkyhook(uninstalling, { finalizers: [finalizerName] })
  await first.acquire(view, 'cordoning', false)
  putSkyhook(uninstalling, { generation: view.metadata.generation })
  await first.confirm(heldBy(first), view)
  expect([leaseCount(), first.denials().get('s')?.message]).toEqual([
    0,
    'Skyhook s asks for an uninstall, waiting for the census to add its finalizer',
  ])
})

test('a slot that somebody deleted is in doubt, and lost at its confirmation', async () => {
  const { api, first, putSkyhook, released } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.remove(leasesPath, heldBy(first).lease)
  await api.eventually(() => expect(heldBy(first).ownership).toBe('seen'))
  await first.confirm(heldBy(first), view)
  expect([isHolding(first), first.denials().has('s'), released.length]).toEqual([false, true, 1])
})

test('a confirmation that a deletion overtakes does not count', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.fault(({ method, path }) => method === 'GET' && path.startsWith(skyhooksPath), { kind: 'slow', byMs: 50 }, 1)
  const confirmation = first.confirm(heldBy(first), view)
  api.fault(({ method }) => method === 'DELETE', { kind: 'slow', byMs: 200 }, 1)
  const deletion = first.release(heldBy(first))
  await clock.advance(50)
  await confirmation
  expect(heldBy(first).ownership).toBe('releasing')
  await clock.advance(150)
  await deletion
})

test('nothing continues under a slot whose deletion is pending', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await first.confirm(heldBy(first), view)
  api.fault(({ method }) => method === 'DELETE', { kind: 'slow', byMs: 100 }, 1)
  const deletion = first.release(heldBy(first))
  expect(heldBy(first).ownership).toBe('releasing')
  await first.confirm(heldBy(first), view)
  expect(heldBy(first).ownership).toBe('releasing')
  await clock.advance(100)
  await deletion
  expect(isHolding(first)).toBe(false)
})

test('a DELETE that is carried out late does not take a slot that was confirmed meanwhile', async () => {
  const { api, clock, transport, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.fault(({ method }) => method === 'DELETE', { kind: 'lose-request' }, 1)
  await expect(first.release(heldBy(first))).rejects.toThrow('was not released')
  const late = api.sent.find(({ method }) => method === 'DELETE')
  await clock.advance(1)
  await first.confirm(heldBy(first), view)
  expect(heldBy(first).ownership).toBe('confirmed')
  await expect(transport.json('DELETE', late?.path ?? '', { body: late?.body })).rejects.toThrow('precondition')
  expect(api.get(leasesPath, heldBy(first).lease)).toBeDefined()
})
