/** What a node knows about the slots that it holds, and how it renews, reports and releases them. */
import { describe, expect, test } from 'vitest'
import { leasesPath } from '../../../test/kit/api-server/sample-server.ts'
import { heldBy, isHolding, nodeOf, startSlotManagerScene } from '../../../test/kit/slots/slot-manager-scene.ts'
import { indexedName, labelKeys, skyhookScope, slotLabels } from '../../lease/names.ts'
import { known } from '../../stages/model/snapshot.ts'

test('the held slots are unknown until the Leases are listed', async () => {
  const { managerOf, putNode } = await startSlotManagerScene()
  const fresh = managerOf('n3')
  expect(fresh.held()).toMatchObject({ known: false })
  putNode('n3', nodeOf('n3'))
  await fresh.untilKnown()
  expect(fresh.held()).toEqual(known([]))
})

test('a load that fails leaves the held slots unknown', async () => {
  const { api, managerOf } = await startSlotManagerScene()
  api.fault(({ path }) => path === leasesPath, { kind: 'refuse', code: 500 }, 10)
  const fresh = managerOf('n1')
  await expect(fresh.untilKnown()).rejects.toThrow('refused by a fault')
  expect(fresh.held().known).toBe(false)
})

test('an agent that starts again sees its slot, and does not trust it before an answer', async () => {
  const { clock, first, putSkyhook, readyManagerOf } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await first.confirm(heldBy(first), view)
  const restarted = await readyManagerOf('n1')
  expect(heldBy(restarted)).toMatchObject({ skyhook: 's', ownership: 'seen', renewedAtMs: 0 })
  expect(restarted.kinds()).toEqual([{ phase: 'cordoning', kind: 'slot' }])
  expect(restarted.grantedAtMs()).toEqual([clock.wallMs()])
})

test.each([labelKeys.name, labelKeys.node])(
  'a slot that has lost the label %s is in doubt, and has it again after the next renewal',
  async (key) => {
    const { api, first, putSkyhook } = await startSlotManagerScene()
    await first.acquire(putSkyhook(), 'cordoning', false)
    const name = heldBy(first).lease
    const before = api.get(leasesPath, name)
    const { [key]: _, ...labels } = (before?.metadata.labels ?? {}) as Record<string, string>
    api.put(leasesPath, { ...before, metadata: { ...before?.metadata, name, labels } })
    await api.eventually(() => expect(heldBy(first)).toMatchObject({ ownership: 'seen', renewedAtMs: 0 }))
    await first.renew(heldBy(first), 'cordoning')
    expect(heldBy(first).ownership).toBe('owned')
    expect(api.get(leasesPath, heldBy(first).lease)?.metadata.labels).toEqual(before?.metadata.labels)
  },
)

test('a renewal writes the phase and the packages that are not complete', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const interrupting = { fake: { version: '1.0.0', image: 'r/fake', interrupt: { type: 'reboot' } } }
  const view = putSkyhook({ packages: interrupting })
  await first.acquire(view, 'cordoning', false)
  await clock.advance(60_000)
  await first.renew(heldBy(first), 'interrupting')
  expect(heldBy(first)).toMatchObject({ phase: 'interrupting', renewedAtMs: clock.steadyMs() })
  expect(JSON.stringify(api.get(leasesPath, heldBy(first).lease))).toContain('fake:1.0.0')
})

test('a slot that somebody deleted is lost at its renewal', async () => {
  const { api, first, putSkyhook, messages } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  api.remove(leasesPath, heldBy(first).lease)
  await first.renew(heldBy(first), 'cordoning')
  expect([isHolding(first), messages]).toEqual([false, ['slot lost']])
})

test('a renewal without an answer is an error and keeps the slot', async () => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'lose-request' }, 20)
  await expect(first.renew(slot, 'cordoning')).rejects.toThrow('was not renewed')
  expect(isHolding(first)).toBe(true)
})

test('a report is true only while the slot is ours', async () => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  expect(await first.report(view.metadata.uid, 'rebooting')).toBe(false)
  await first.acquire(view, 'cordoning', false)
  const { report } = first // nothing depends on its name
  expect(await report(view.metadata.uid, 'rebooting')).toBe(true)
  expect(heldBy(first).phase).toBe('rebooting')
  api.remove(leasesPath, heldBy(first).lease)
  expect(await report(view.metadata.uid, 'rebooting')).toBe(false)
})

test('a release without an answer keeps the slot', async () => {
  const { api, first, putSkyhook, released } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  const slot = heldBy(first)
  api.fault(({ method, path }) => method !== 'POST' && path.startsWith(leasesPath), { kind: 'lose-request' }, 20)
  await expect(first.release(slot)).rejects.toThrow('was not released')
  expect([isHolding(first), released]).toEqual([true, []])
})

describe('the watch of own slots', () => {
  /** The watches of both nodes are open. */
  async function startWatchedScene() {
    const scene = await startSlotManagerScene()
    const { api, putSkyhook } = scene
    const { metadata } = putSkyhook()
    await api.eventually(() => expect(api.server.openWatches()).toBe(2))
    /** A slot of n1, which has not requested it. */
    const scope = skyhookScope({ name: 's', uid: metadata.uid })
    const name = indexedName(scope, 0)
    const putSlot = (nodeUid: string): unknown =>
      api.put(leasesPath, {
        metadata: {
          name,
          labels: slotLabels(scope, 'slot', 'n1'),
          annotations: { 'skyhook.nvidia.com/node-uid': nodeUid, 'skyhook.nvidia.com/phase': 'working' },
        },
        spec: { holderIdentity: 'n1' },
      })
    return { ...scene, putSlot, name }
  }

  test('the watch shows a slot that appears without a request, and wakes the loop', async () => {
    const { api, first, second, putSlot, wakes } = await startWatchedScene()
    putSlot('n1-uid')
    await api.eventually(() => expect(isHolding(first)).toBe(true))
    expect(heldBy(first)).toMatchObject({ skyhook: 's', ownership: 'seen', isFormer: false })
    expect([wakes() > 0, isHolding(second)]).toEqual([true, false])
  })

  test('the watch shows a slot of an earlier registration, and it can be released', async () => {
    const { api, first, putSlot, name } = await startWatchedScene()
    putSlot('n1-before')
    await api.eventually(() => expect(isHolding(first)).toBe(true))
    expect(heldBy(first).isFormer).toBe(true)
    await first.release(heldBy(first))
    expect([isHolding(first), api.get(leasesPath, name)]).toEqual([false, undefined])
  })
})
