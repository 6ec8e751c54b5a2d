/** A node in line for few slots watches all of them, and requests one when it sees a free one. */
import { describe, expect, test } from 'vitest'
import {
  budgeted,
  createDeniedScene,
  createSlotLineScene,
  early,
  full,
  late,
  lost,
  recoverySlot,
  slot0,
  slot1,
  slotAt,
} from '../../../test/kit/slots/slot-line-scene.ts'

test('a denied node watches all slots, without another LIST', async () => {
  const { clock, server, take, deny, requests, turns } = await createSlotLineScene({ agents: 3 })
  await take(slot0)
  await deny()
  await clock.advance(20_000)
  expect(requests()).toEqual(['list', 'watch'])
  expect(server.openWatches()).toBe(1)
  await take('of-another-skyhook')
  await clock.advance(20_000)
  expect(turns).toEqual([])
})

test('a freed slot is asked for soon', async () => {
  const { clock, release, turns } = await createDeniedScene()
  await clock.advance(1_000)
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
  expect(turns[0]).toBeLessThan(1_100)
})

test('a slot that another node takes meanwhile is not asked for', async () => {
  const { clock, take, release, turns } = await createDeniedScene()
  await clock.advance(1_000)
  await release(slot0)
  await clock.advance(5)
  await take(slot0)
  await clock.advance(30_000)
  expect(turns).toEqual([])
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('any free slot of several is asked for', async () => {
  const view = budgeted({ count: 3 })
  const { clock, take, deny, release, turns } = await createSlotLineScene({ agents: 3, view })
  for (const index of [0, 1, 2]) await take(slotAt(index))
  await deny()
  await clock.advance(1_000)
  await release(slotAt(2))
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

describe('of those who see the same slot', () => {
  /** When a node with this lot requests the only slot, in ms. Of a thousand nodes, 50 still wait. */
  async function askedAfterMs(drawn: number, answerMs = 0): Promise<number> {
    const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, drawn })
    const { clock, server, take, count, askByCount, release, turns } = scene
    server.faults.rules.push({
      name: 'slow',
      fault: { kind: 'slow', byMs: answerMs },
      matches: ({ verb }) => verb === 'get',
    })
    await take(slot0)
    await count(1_000, 50)
    await askByCount()
    turns.length = 0
    const releasedAtMs = clock.monotonicMs()
    await release(slot0)
    await clock.advance(60_000)
    return (turns[0] ?? Infinity) - releasedAtMs
  }

  test('each asks at a time of its own', async () => {
    expect(await askedAfterMs(0)).toBeLessThan(50)
    const middleMs = await askedAfterMs(0.5)
    expect(middleMs).toBeGreaterThanOrEqual(50 * 20)
    expect(middleMs).toBeLessThan(50 * 20 + 100)
  })

  test('they take more time where the API server is slow', async () => {
    expect(await askedAfterMs(0.5, 100)).toBeGreaterThan(50 * 150)
  })
})

test('a request that finds the slot taken again is not repeated', async () => {
  const { clock, line, view, release, take, beginRequest, turns } = await createDeniedScene()
  await clock.advance(1_000)
  await release(slot0)
  await clock.advance(1_000)
  const listing = await beginRequest()
  await take(slot0)
  line.afterDenial(view(), full(listing), 'slot')
  await clock.advance(20_000)
  expect(turns).toHaveLength(1)
})

test('a node that was beaten asks when the slot is freed', async () => {
  const { clock, line, view, take, release, list, turns, reasons } = await createSlotLineScene({ agents: 3 })
  const listing = await list()
  await take(slot0) // the other node was faster
  const pause = line.afterDenial(view(), lost(slot0, listing), 'slot')
  expect(pause.message).toBe('other nodes request slots at the same time')
  await clock.advance(1_000)
  expect([turns, reasons]).toEqual([[], ['the budget of 1 node is used up']])
  await release(slot0)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a node that is refused though it sees a free slot asks again, later each time', async () => {
  const { clock, line, view, list, turns } = await createSlotLineScene({ agents: 3 })
  const listing = await list()
  const pausesMs: number[] = []
  for (let request = 0; request < 3; request++) {
    const deniedAtMs = clock.monotonicMs()
    turns.length = 0
    line.afterDenial(view(), lost(slot0, listing), 'slot')
    await clock.advance(10_000)
    pausesMs.push((turns.at(-1) ?? Infinity) - deniedAtMs)
  }
  expect(pausesMs[0]).toBeGreaterThanOrEqual(100)
  expect(pausesMs[1]).toBeGreaterThan(pausesMs[0] as number)
  expect(pausesMs[2]).toBeGreaterThan(pausesMs[1] as number)
})

test('a slot without an index takes room', async () => {
  const { clock, take, release, deny, turns } = await createSlotLineScene({ agents: 3 })
  await take(recoverySlot, 'recovery')
  await deny()
  await clock.advance(1_000)
  expect(turns).toEqual([])
  await release(recoverySlot)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
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

test('a wait that is over closes its watch and its timer', async () => {
  const { clock, server, line, release, turns } = await createDeniedScene()
  await clock.advance(100)
  await release(slot0)
  await clock.advance(1)
  line.update(new Set())
  await clock.advance(60_000)
  expect([server.openWatches(), turns]).toEqual([0, []])
})

test('a wait continues while the Skyhooks are unknown', async () => {
  const { clock, line, forgetSkyhooks, release, turns } = await createDeniedScene()
  await clock.advance(100)
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

test('a slot that comes free while a request is under way is asked for once more', async () => {
  const view = budgeted({ count: 2 })
  const scene = await createSlotLineScene({ agents: 3, view, nodeUid: early })
  const { clock, line, take, release, deny, beginRequest, turns } = scene
  for (const slot of [slot0, slot1]) await take(slot)
  await deny()
  await clock.advance(1_000)
  const listing = await beginRequest()
  await release(slot1)
  line.afterDenial(view, full(listing), 'slot')
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})
