/** A denied node watches one held slot, and asks when that one is released. */
import { expect, test } from 'vitest'
import {
  budgeted,
  createDeniedScene,
  createSlotLineScene,
  full,
  lost,
  recoverySlot,
  slot0,
  slot1,
} from '../../../test/kit/slots/slot-line-scene.ts'

test('a denied node follows one held slot by name, without another LIST', async () => {
  const { clock, server, take, deny, requests, turns } = await createSlotLineScene({ agents: 3 })
  await take(slot0)
  expect(await deny()).toBe(37_500)
  await clock.advance(20_000)
  expect(requests()).toEqual(['list', 'watch'])
  expect(server.openWatches()).toBe(1)
  await take('of-another-skyhook')
  await clock.advance(20_000)
  expect(turns).toEqual([])
})

test('a freed slot is asked for after a share of the spread', async () => {
  const { clock, line, view, release, turns } = await createDeniedScene()
  await clock.advance(1_000)
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toEqual([1_037.5]) // 25 ms for each of three, the half
  expect(line.preferredIndex(view())).toBe(0)
})

test('a slot that another node takes within the spread is not asked for', async () => {
  const { clock, take, release, turns } = await createDeniedScene()
  await clock.advance(10)
  await release(slot0)
  await clock.advance(5)
  await take(slot0)
  await clock.advance(30_000)
  expect(turns).toEqual([])
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test.each([
  ['many others are free is taken as a sign to ask for one of those', 60, 1],
  ['few others are free is left to the others in line', 10, 0],
])('a followed slot that another node takes while %s', async (_, othersFree, expected) => {
  const view = budgeted({ count: 100 })
  const { clock, take, deny, release, turns } = await createSlotLineScene({
    agents: 300,
    isCounted: true,
    view,
    drawn: 0.1,
  })
  await take(slot0)
  await deny()
  await release(slot0)
  await take(slot0, 'slot', othersFree)
  await clock.advance(10_000)
  expect(turns).toHaveLength(expected)
})

test.each([
  ['soon there', 10, 1],
  ['late', 10_000, 2],
])(
  'a slot that is freed while a LIST from before is under way is asked for once more after its answer, which is %s',
  async (_, answeredAfterMs, expected) => {
    const { clock, line, view, release, beginRequest, turns } = await createDeniedScene()
    await clock.advance(1_000)
    const listing = await beginRequest()
    await release(slot0)
    await clock.advance(answeredAfterMs)
    line.afterDenial(view(), full(listing))
    await clock.advance(60_000)
    expect(turns).toHaveLength(expected)
  },
)

test('a request after a release that finds the slot taken again is not repeated', async () => {
  const { clock, line, view, release, beginRequest, turns } = await createDeniedScene()
  await release(slot0)
  await clock.advance(1_000)
  const listing = await beginRequest()
  line.afterDenial(view(), full({ ...listing, slots: [] }))
  await clock.advance(20_000)
  expect(turns).toHaveLength(1)
})

test('a node that was beaten follows the slot that it lost', async () => {
  const { clock, line, view, take, release, list, turns } = await createSlotLineScene({ agents: 3 })
  const listing = await list()
  await take(slot0) // the other one was faster
  const pause = line.afterDenial(view(), lost(slot0, listing))
  expect(pause).toEqual({ message: 'the budget of 1 node is used up', retryInMs: 37_500 })
  await clock.advance(1_000)
  expect(turns).toEqual([])
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a node that was beaten no longer follows the slot whose release it has seen under another name', async () => {
  const { clock, line, view, take, release, deny, beginRequest, turns } = await createSlotLineScene({ agents: 3 })
  await take(recoverySlot, 'recovery')
  await deny()
  await clock.advance(10)
  await release(recoverySlot)
  await clock.advance(1_000)
  const listing = await beginRequest()
  await take(slot0) // the other one was faster
  line.afterDenial(view(), lost(slot0, listing))
  await clock.advance(1_000)
  turns.length = 0
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a node that was beaten while others were free asks again, later each time', async () => {
  const { server, line, view, list } = await createSlotLineScene({ agents: 3 })
  const listing = await list()
  const beaten = (): number => line.afterDenial(view(), lost(slot0, listing, 1)).retryInMs
  expect([beaten(), beaten(), beaten()]).toEqual([150, 300, 600])
  expect(server.openWatches()).toBe(0)
})

test('a slot without an index takes room and is followed like others', async () => {
  const { clock, line, view, take, release, deny, turns } = await createSlotLineScene({ agents: 3 })
  await take(recoverySlot, 'recovery')
  await deny()
  await clock.advance(10)
  await release(recoverySlot)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
  expect(line.preferredIndex(view())).toBeUndefined()
})

test('a slot that is freed while the watch is broken is asked for', async () => {
  const { clock, server, release, turns } = await createDeniedScene()
  await clock.advance(1_000)
  server.stop()
  await clock.advance(1_000)
  server.start({ hasEmptyCache: true })
  await release(slot0)
  await clock.advance(60_000)
  expect(turns).toHaveLength(1)
})

test('a slot that is taken and freed again while the watch is broken is asked for once more', async () => {
  const { clock, server, take, release, deny, turns } = await createDeniedScene()
  await clock.advance(1_000)
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
  server.stop()
  server.start({ hasEmptyCache: true })
  await take(slot0)
  await deny()
  await release(slot0)
  await clock.advance(5_000)
  expect(turns).toHaveLength(2)
})

test('a wait that is over closes its watch and its timer', async () => {
  const { clock, server, line, release, turns } = await createDeniedScene()
  await clock.advance(10)
  await release(slot0)
  await clock.advance(1)
  line.update(new Set())
  await clock.advance(60_000)
  expect([server.openWatches(), turns]).toEqual([0, []])
})

test('a wait goes on while the Skyhooks are not known', async () => {
  const { clock, line, forgetSkyhooks, release, turns } = await createDeniedScene()
  await clock.advance(10)
  forgetSkyhooks()
  line.update(new Set(['s']))
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a Skyhook that was created again is asked for at once, however long its predecessor was to wait', async () => {
  const { clock, server, view, edit, turns } = await createDeniedScene()
  await clock.advance(10)
  edit({ ...view(), metadata: { ...view().metadata, uid: 'another' } })
  expect(turns).toHaveLength(1)
  await clock.advance(10)
  expect(server.openWatches()).toBe(0)
})

test('looks at all slots do not become rare where a node watches one of several', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 2 }) })
  const { line, view, take, deny, list } = scene
  await take(slot0)
  await take(slot1)
  expect([await deny(), await deny(), await deny()]).toEqual([37_500, 37_500, 37_500])
  expect(line.afterBootstrapDenial(view(), full(await list())).retryInMs).toBe(37_500)
})

test('a look that finds no free slot changes the slot that a node follows, a lost race does not', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 2 }) })
  const { clock, server, line, view, take, release, deny, requests, turns } = scene
  await take(slot0)
  await take(slot1)
  await deny()
  await clock.advance(10)
  await deny() // half of the way through the held ones
  await clock.advance(10)
  expect(requests()).toEqual(['list', 'watch', 'list', 'watch'])
  expect([server.openWatches(), line.preferredIndex(view())]).toEqual([1, 1])
  await release(slot1)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
  await take(slot1)
  await deny()
  expect(requests()).toEqual(['list'])
})

test('looks at the only slot become rare while nothing is seen', async () => {
  const { take, deny } = await createSlotLineScene({ agents: 3 })
  await take(slot0)
  const looks: number[] = []
  for (let look = 0; look < 6; look++) looks.push(await deny())
  expect(looks).toEqual([37_500, 75_000, 150_000, 300_000, 375_000, 375_000])
})
