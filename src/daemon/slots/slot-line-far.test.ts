/** A node for whose slot many others come first: it sleeps, and reads the ledger now and then. */
import { expect, test } from 'vitest'
import type { InterruptionBudget } from '../../schemas/skyhook.ts'
import {
  budgeted,
  createSleepingScene,
  createSlotLineScene,
  late,
  slot0,
  slotAt,
} from '../../../test/support/slot-line-scene.ts'

test('a sleeping node hears that its turn is near before it asks', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late })
  const { clock, line, take, count, askByCount, turns, nears } = scene
  await count(1_000, 1_000)
  await askByCount(false)
  await clock.advance(10_000)
  expect([[...line.distant()], nears]).toEqual([['s'], []])
  await take(slot0)
  await count(1_000, 130)
  for (let seconds = 0; seconds < 600 && nears.length === 0; seconds++) await clock.advance(1_000)
  expect([[...line.distant()], nears.length, turns]).toEqual([[], 1, []])
})

test.each<[string, number, InterruptionBudget, readonly string[]]>([
  ['of a small cluster is near', 18, { count: 1 }, []],
  ['of a large cluster may be far', 100, { count: 1 }, ['s']],
  ['of a large cluster with a large budget is near', 100, { count: 50 }, []],
  ['is near where there is no budget', 1_000, {}, []],
  ['may be far from the turn that a budget of 0 never brings', 1_000, { count: 0 }, ['s']],
  ['may be far while nobody has counted for a percentage', 1_000, { percent: 50 }, ['s']],
])('a node %s', async (_, agents, budget, distant) => {
  const { line } = await createSlotLineScene({ agents, view: budgeted(budget) })
  expect([...line.distant()]).toEqual(distant)
})

test('a node sleeps, then follows the ledger in line, then watches the slots', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ count: 10 }) })
  const { clock, server, take, release, count, askByCount, requests, turns } = scene
  for (let index = 0; index < 10; index++) await take(slotAt(index))
  await count(1_000, 1_000)
  await askByCount()
  requests()
  expect(server.openWatches()).toBe(0)
  for (let waiters = 1_000; waiters > 130; waiters -= 10) {
    await count(1_000, waiters)
    await clock.advance(1_000)
  }
  const ofLine = requests()
  expect([server.openWatches(), ofLine.filter((one) => one === 'watch').length]).toEqual([1, 1])
  expect(ofLine.length).toBeLessThan(10)
  await release(slotAt(0))
  await clock.advance(5_000)
  expect([requests(), turns]).toEqual([[], []]) // it does not see that
  await take(slotAt(0))
  await count(1_000, 102)
  await clock.advance(1_000)
  expect([requests(), server.openWatches(), turns]).toEqual([['watch'], 1, []])
  await release(slotAt(3))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a node in line asks without a look at the slots when the count has one for it', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ count: 40 }) })
  const { clock, count, askByCount, requests, turns } = scene
  await count(1_000, 150)
  await askByCount()
  requests()
  await count(1_000, 130, undefined, 35)
  await clock.advance(1_000)
  expect([turns.length, requests()]).toEqual([1, []])
})

test('a far node looks for a census, and comes forward now and then, when the ledger stands still', async () => {
  const { clock, server, line, requests, missingCounts } = await createSleepingScene({ drawn: 0.04 })
  requests()
  await clock.advance(200_000)
  expect([missingCounts, server.openWatches()]).toEqual([[], 0])
  await clock.advance(500_000)
  expect(missingCounts.length).toBeGreaterThan(0)
  expect([server.openWatches(), line.distant().size]).toEqual([1, 0])
})

test('a raised budget brings a far node near', async () => {
  const { clock, line, edit, count, turns, nears } = await createSleepingScene()
  edit(budgeted({ count: 600 }))
  await clock.advance(0)
  expect([nears.length, line.distant().size]).toEqual([1, 0])
  await count(1_000, 1_000, undefined, 599)
  await clock.advance(5_000)
  expect(turns).toEqual([]) // about three hundred others come first
  await count(1_000, 650, undefined, 599)
  await clock.advance(5_000)
  expect(turns).toHaveLength(1)
})

test('a ledger that cannot be read is read again', async () => {
  const { clock, server, count, turns } = await createSleepingScene()
  await count(1_000, 1)
  server.stop()
  await clock.advance(500_000)
  server.start()
  await clock.advance(1_000_000)
  expect(turns.length).toBeGreaterThan(0)
})
