/** The recovery slot of a node in the middle of a change without a slot. */
import { expect, test } from 'vitest'
import { leasesPath } from '../../../test/kit/api-server/sample-server.ts'
import { heldBy, isHolding, startSlotManagerScene } from '../../../test/kit/slots/slot-manager-scene.ts'

/** Deletes each slot of the first node, whose next renewal then fails. Returns the number of slots. */
async function loseSlots({ api, first }: Awaited<ReturnType<typeof startSlotManagerScene>>): Promise<number> {
  const held = first.held()
  const slots = held.known ? held.value : []
  for (const slot of slots) {
    api.remove(leasesPath, slot.lease)
    await first.renew(slot, 'interrupting')
  }
  return slots.length
}

test('a recovery slot is granted beyond the budget', async () => {
  const { first, second, putSkyhook, messages } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.createRecovery(view, 'interrupting', 'skyhook')
  expect(heldBy(second)).toMatchObject({ ownership: 'owned', phase: 'interrupting' })
  expect(messages).toEqual(['node is mid-change without a slot, created a recovery slot'])
})

test('a recovery slot that is deleted again and again is created after growing pauses', async () => {
  const scene = await startSlotManagerScene()
  const { clock, first, putSkyhook } = scene
  const view = putSkyhook()
  const createdAtS: number[] = []
  const startMs = clock.steadyMs()
  for (let passedMs = 0; passedMs < 40_000; passedMs += 500) {
    const dueAtMs = first.denials().get('s')?.nextRequestAtMs ?? 0
    if (dueAtMs <= clock.steadyMs()) await first.createRecovery(view, 'interrupting', 'skyhook')
    if ((await loseSlots(scene)) > 0) createdAtS.push((clock.steadyMs() - startMs) / 1_000)
    await clock.advance(500)
  }
  expect(createdAtS).toEqual([0, 1, 3, 7, 15, 31])
})

test('a recovery slot that is put off is a denial that says why, and that no free slot of others ends', async () => {
  const scene = await startSlotManagerScene()
  const { clock, first, putSkyhook } = scene
  const view = putSkyhook()
  for (let round = 0; round < 2; round++) {
    await first.createRecovery(view, 'interrupting', 'skyhook')
    await loseSlots(scene)
  }
  expect(first.denials().get('s')).toMatchObject({
    message: 'the slot was deleted soon after the node took it',
    nextRequestAtMs: clock.steadyMs() + 1_000,
    waitsFor: 'recovery',
  })
  expect(first.requestNow('s')).toBe(false)
})

test('a recovery slot that was refused says why, also after its denial was forgotten', async () => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: 403, reason: 'Forbidden' }, 10)
  await first.createRecovery(view, 'interrupting', 'skyhook')
  const refusal = first.denials().get('s')?.message
  first.keepWaiting(new Set())
  await first.createRecovery(view, 'interrupting', 'skyhook')
  expect([refusal, first.denials().get('s')?.message]).toEqual([expect.stringContaining('rejected'), refusal])
})

test('a recovery slot that the API server rejects is a denial with its answer, repeated after growing pauses', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: 403, reason: 'Forbidden' }, 10)
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

test('a recovery slot that gets no answer is an error', async () => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'lose-request' }, 10)
  await expect(first.createRecovery(view, 'interrupting', 'skyhook')).rejects.toThrow('recovery slot')
  expect(isHolding(first)).toBe(false)
})
