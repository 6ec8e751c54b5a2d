/** A node behind many others in the line for a slot: it sleeps, and reads the ledger at times. */
import { expect, test } from 'vitest'
import { lineLength, watchedIndices } from '../../lease/waiting.ts'
import type { InterruptionBudget } from '../../schemas/skyhook.ts'
import {
  budgeted,
  createSleepingScene,
  createSlotLineScene,
  full,
  late,
  slot0,
  slotAt,
} from '../../../test/kit/slots/slot-line-scene.ts'

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

test('a node sleeps, then watches a few slots and the ledger in line, and asks for one that it sees free', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ count: 40 }) })
  const { clock, server, line, view, take, release, count, askByCount, requests, turns } = scene
  for (let index = 0; index < 40; index++) await take(slotAt(index))
  await count(1_000, 1_000)
  await askByCount()
  requests()
  expect(server.openWatches()).toBe(0)
  for (let waiters = 1_000; waiters > 160; waiters -= 10) {
    await count(1_000, waiters)
    await clock.advance(1_000)
  }
  const ofLine = requests()
  expect([server.openWatches(), ofLine.filter((one) => one === 'watch').length]).toEqual([1, 1])
  expect(ofLine.length).toBeLessThan(10)
  const watched = watchedIndices(late, 40, lineLength(40, 1_000)) as readonly number[]
  const [seen, unseen] = [
    watched[0] as number,
    Array.from({ length: 40 }, (_, at) => at).find((at) => !watched.includes(at)),
  ]
  await release(slotAt(unseen as number))
  await clock.advance(5_000)
  expect([requests(), turns]).toEqual([[], []]) // other nodes see that
  await release(slotAt(seen))
  await clock.advance(1_000)
  expect([turns.length, line.preferredIndex(view())]).toEqual([1, seen])
})

test('a node watches all slots once those that it watches do not show why its request was in vain', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ count: 40 }) })
  const { clock, line, view, take, release, count, askByCount, list, turns } = scene
  for (let index = 0; index < 80; index++) await take(slotAt(index))
  await count(1_000, 130)
  await askByCount()
  for (let index = 0; index < 40; index++) await release(slotAt(index)) // the budget was halved
  await clock.advance(5_000)
  expect(turns.length).toBeGreaterThan(0)
  line.afterDenial(view(), full(await list()), 'slot')
  await clock.advance(1_000)
  turns.length = 0
  await clock.advance(60_000)
  expect(turns).toEqual([])
  await release(slotAt(70))
  await clock.advance(5_000)
  expect(turns).toHaveLength(1)
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
  const { clock, line, edit, turns, nears } = await createSleepingScene()
  edit(budgeted({ count: 600 }))
  await clock.advance(0)
  expect([nears.length, line.distant().size]).toEqual([1, 0])
  await clock.advance(10_000)
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
