/** Slots that come free while a request is under way: its LIST may be from before. */
import { expect, test } from 'vitest'
import type { ScopeListing } from '../../lease/slot-reads.ts'
import type { InterruptionBudget } from '../../schemas/skyhook.ts'
import {
  batched,
  batchScope,
  batchSlot,
  budgeted,
  createSlotLineScene,
  full,
  lost,
  slot0,
  slot1,
} from '../../../test/kit/slots/slot-line-scene.ts'

/** A node of four with one request under way. */
async function sceneOfRequest(atFirst = budgeted({ count: 1 })) {
  const scene = await createSlotLineScene({ agents: 4, view: atFirst })
  const { clock, deny, beginRequest, turns } = scene

  /**
   * The node has looked often enough to ask seldom, and sends a request. `during` comes before its answer, which the
   * test gives. Returns the LIST of the request.
   */
  async function requestWhile(during: () => unknown, inScope?: typeof batchScope): Promise<ScopeListing> {
    for (let look = 0; look < 6; look++) await deny(inScope)
    await clock.advance(1_000)
    const listing = await beginRequest(inScope)
    await during()
    await clock.advance(2_000)
    turns.length = 0
    return listing
  }

  return { ...scene, requestWhile }
}

test('a slot that another node takes and frees again is asked for once more by the node that was beaten', async () => {
  const { clock, line, view, take, release, requestWhile, turns } = await sceneOfRequest()
  await take(slot0)
  const listing = await requestWhile(async () => {
    await release(slot0)
    await take(slot0)
    await clock.advance(5)
    await release(slot0)
  })
  line.afterDenial(view(), lost(slot0, listing))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a slot that is freed beside the one that the node loses is asked for once more', async () => {
  const { clock, line, view, take, release, requestWhile, turns } = await sceneOfRequest(budgeted({ count: 2 }))
  await take(slot0)
  const listing = await requestWhile(async () => {
    await take(slot1) // the other one was faster
    await release(slot0)
  })
  line.afterDenial(view(), lost(slot1, listing))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a slot that another node holds when the answer comes is not asked for', async () => {
  const { clock, line, view, take, release, requestWhile, turns } = await sceneOfRequest()
  await take(slot0)
  const listing = await requestWhile(async () => {
    await release(slot0)
    await clock.advance(5)
    await take(slot0)
  })
  line.afterDenial(view(), lost(slot0, listing))
  await clock.advance(20_000)
  expect(turns).toEqual([])
})

test.each<[string, InterruptionBudget, InterruptionBudget]>([
  ['raised', { count: 1 }, { count: 3 }],
  ['lifted', { count: 1 }, {}],
  ['raised from 0', { count: 0 }, { count: 1 }],
])('a budget that is %s is asked for after the answer', async (_, before, after) => {
  const { clock, line, view, edit, take, requestWhile, turns } = await sceneOfRequest(budgeted(before))
  if (before.count !== 0) await take(slot0)
  const asked = view()
  const listing = await requestWhile(() => edit(budgeted(after)))
  line.afterDenial(asked, before.count === 0 ? full() : full(listing))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a raised budget is asked for by a node that was beaten, and for slots beside the line', async () => {
  const scene = await sceneOfRequest(budgeted({ count: 0 }, { count: 1 }))
  const { clock, line, view, edit, take, list, beginRequest, turns } = scene
  await take(slot0)
  line.afterBootstrapDenial(view(), full(await list()))
  for (const answer of ['waiting', 'lost'] as const) {
    const asked = view()
    const listing = await beginRequest()
    edit(budgeted({ count: 0 }, { count: (asked.spec.bootstrap?.count ?? 0) + 1 }))
    await clock.advance(1_000)
    turns.length = 0
    line.afterBootstrapDenial(asked, answer === 'lost' ? lost(slot0, listing) : full(listing))
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  }
})

test.each(['waiting', 'lost'] as const)(
  'a batch that grows is asked for after an answer that shows the one before (%s)',
  async (outcome) => {
    const { clock, line, view, take, count, requestWhile, turns } = await sceneOfRequest(batched())
    await count(4, 3, 1)
    await take(batchSlot)
    const listing = await requestWhile(() => count(4, 3, 3), batchScope)
    line.afterDenial(view(), outcome === 'lost' ? lost(batchSlot, listing) : full(listing))
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  },
)

test('the ledger of an answer does not replace one that was seen after the request began', async () => {
  const { clock, line, view, take, count, requestWhile, turns } = await sceneOfRequest(budgeted({ percent: 50 }))
  await count(6, 5)
  await take(slot0)
  const listing = await requestWhile(() => count(2, 1))
  line.afterDenial(view(), full(listing))
  await clock.advance(1_000)
  expect(turns).toEqual([])
  await count(6, 5)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})
