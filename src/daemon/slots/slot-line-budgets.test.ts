/** A waiting node sees changes of its budget: by an edit, or by a count of the census. */
import { expect, test } from 'vitest'
import {
  budgeted,
  createDeniedScene,
  createSlotLineScene,
  slot0,
  slot1,
} from '../../../test/kit/slots/slot-line-scene.ts'

test('a raised budget is asked for at once, a lowered one is not', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 2 }) })
  const { clock, edit, take, deny, turns } = scene
  await take(slot0)
  await take(slot1)
  await deny()
  edit(budgeted({ count: 1 }))
  await clock.advance(10_000)
  expect(turns).toEqual([])
  edit(budgeted({ count: 3 }))
  await clock.advance(100)
  expect(turns).toHaveLength(1)
})

test('a node asks for new slots though the one that was held is passed on', async () => {
  const { clock, edit, take, release, deny, turns } = await createSlotLineScene({ agents: 15 })
  await take(slot0)
  await deny()
  edit(budgeted({ count: 3 }))
  await release(slot0)
  await clock.advance(1)
  await take(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a budget of 0 that becomes a percentage waits for the count', async () => {
  const { clock, line, view, edit, count, turns } = await createSlotLineScene({
    agents: 3,
    view: budgeted({ count: 0 }),
  })
  line.afterDenial(view(), { outcome: 'waiting', reason: 'the budget is 0' }, 'slot')
  edit(budgeted({ percent: 50 }))
  await clock.advance(5_000)
  expect(turns).toEqual([])
  await count(3, 3)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a budget of 0 costs no request, and is asked for when it is raised', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 0 }) })
  const { clock, line, view, edit, beforeRequest, requests, turns } = scene
  expect(beforeRequest()).toBeUndefined()
  line.afterDenial(view(), { outcome: 'waiting', reason: 'the budget is 0' }, 'slot')
  await clock.advance(60_000)
  expect(requests()).toEqual([])
  edit(budgeted({ count: 1 }))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a budget that is lifted is asked for at once', async () => {
  const { clock, edit, turns } = await createDeniedScene()
  edit(budgeted({}))
  await clock.advance(0)
  expect(turns).toHaveLength(1)
})

test('a spec that is not read yet changes nothing', async () => {
  const { clock, edit, turns } = await createDeniedScene()
  edit({ ...budgeted({ count: 3 }), stale: true })
  await clock.advance(1_000)
  expect(turns).toEqual([])
})

test('a percentage without a count is asked for as soon as there is one', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ percent: 50 }) })
  const { clock, count, deny, requests, turns, missingCounts } = scene
  await deny()
  await clock.advance(10)
  await count(10, 10)
  await clock.advance(1_000)
  expect([turns.length, missingCounts.length]).toEqual([1, 0])
  expect(requests()).toEqual(['list', 'watch', 'watch'])
})

test('a count that stays missing lets somebody look for the census', async () => {
  const { clock, deny, missingCounts } = await createSlotLineScene({ agents: 3, view: budgeted({ percent: 50 }) })
  await deny()
  await clock.advance(10_000)
  expect(missingCounts).toHaveLength(1)
})

test('a percentage of more nodes is asked for at once, although there were fewer Nodes at the last request', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: { ...budgeted({ percent: 50 }), nodes: 2 } })
  const { clock, take, count, deny, turns } = scene
  await count(2, 2)
  await take(slot0)
  await deny()
  await clock.advance(10)
  await count(2, 1)
  await clock.advance(1_000)
  expect(turns).toEqual([])
  await count(6, 5)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a budget that is edited before the node has seen the slots is not asked for in vain', async () => {
  const { clock, edit, take, deny, turns } = await createSlotLineScene({ agents: 3, view: budgeted({ count: 2 }) })
  for (const slot of [slot0, slot1]) await take(slot)
  await deny()
  edit(budgeted({ count: 1 }))
  await clock.advance(1_000)
  expect(turns).toEqual([])
})
