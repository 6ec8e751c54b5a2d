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
} from '../../../test/kit/slots/slot-line-scene.ts'

test('a sleeping node hears that its turn is near before it asks', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late })
  const { clock, line, take, count, askByCount, turns, nears } = scene
  await count(1_000, 1_000)
  await askByCount(false)
  await clock.advance(10_000)
  expect([[...line.distant()], nears]).toEqual([['s'], []])
  await take(slot0)
  await count(1_000, 110)
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

test('a node sleeps until its turn is near, then follows the slot of its place', async () => {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ count: 10 }) })
  const { clock, server, take, release, count, askByCount, requests, turns } = scene
  for (let index = 0; index < 10; index++) await take(slotAt(index))
  await count(1_000, 1_000)
  await askByCount()
  for (let waiters = 1_000; waiters > 150; waiters -= 10) {
    await count(1_000, waiters)
    await clock.advance(1_000)
  }
  expect([server.openWatches(), turns]).toEqual([1, []])
  const reads = requests().filter((one) => one.includes('ledger'))
  expect(reads.length).toBeLessThan(10)
  for (let index = 0; index < 10; index++) await release(slotAt(index))
  await clock.advance(5_000)
  expect(turns).toHaveLength(1)
})

test.each([
  ['fast', 0, 200],
  ['slow', 200, 3_000],
  ['very slow once', 20_000, 4_000],
])('a node that read the ledger from an API server that was %s gives those before it time to ask', async (...of) => {
  const [, byMs, withinMs] = of
  const slots = Array.from({ length: 40 }, (_, index) => slotAt(index))
  const view = budgeted({ count: slots.length })
  const { clock, server, take, release, count, askByCount, turns, nears } = await createSlotLineScene({
    agents: 1_000,
    nodeUid: late,
    view,
  })
  for (const slot of slots) await take(slot)
  await count(1_000, 1_000)
  await askByCount()
  server.faults.rules.push({
    name: 'slow',
    fault: { kind: 'slow', byMs },
    matches: ({ verb, location }) => verb === 'get' && location?.name?.endsWith('.ledger') === true,
  })
  await count(1_000, 150)
  for (let seconds = 0; seconds < 600 && nears.length === 0; seconds++) await clock.advance(1_000)
  await clock.advance(1_000)
  expect(turns).toEqual([])
  const releasedAtMs = clock.monotonicMs()
  for (const slot of slots) await release(slot)
  await clock.advance(60_000)
  const waitedMs = (turns[0] ?? Infinity) - releasedAtMs
  expect(waitedMs).toBeLessThanOrEqual(withinMs)
  if (byMs > 0) expect(waitedMs).toBeGreaterThan(200)
})

test('a node asks at once when its turn has come and its slot is free', async () => {
  const { clock, count, turns, nears } = await createSleepingScene()
  await count(1_000, 5)
  await clock.advance(600_000)
  expect((turns[0] ?? Infinity) - (nears[0] ?? 0)).toBeLessThan(1_000)
})

test('a far node looks for itself, and for a census, when the ledger stands still', async () => {
  const { clock, turns, missingCounts } = await createSleepingScene()
  await clock.advance(1_000_000)
  expect(missingCounts.length).toBeGreaterThan(0)
  expect(turns.length).toBeGreaterThan(0)
})

test('a raised budget brings a far node near', async () => {
  const { clock, line, edit, turns, nears } = await createSleepingScene()
  edit(budgeted({ count: 600 }))
  expect([nears.length, line.distant().size]).toEqual([1, 0])
  await clock.advance(1_000)
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
