/** What a node does instead of its first request for a slot. */
import { describe, expect, test } from 'vitest'
import { budgeted, createSlotLineScene, early, late, slot0 } from '../../../test/kit/slots/slot-line-scene.ts'

describe('a node of a small fleet', () => {
  /** A node of ten that the census has counted. */
  const sceneOf = (nodeUid: string) => createSlotLineScene({ agents: 10, nodeUid, isCounted: true })

  test('the first request is not held up where the node comes first, or nobody has counted', async () => {
    const first = await sceneOf(early)
    expect(await first.beforeRequest()).toBeUndefined()
    const uncounted = await createSlotLineScene({ agents: 10, nodeUid: late })
    expect(await uncounted.beforeRequest()).toBeUndefined()
    expect([...first.requests(), ...uncounted.requests()]).toEqual([])
  })

  test('the first request is left out while those who come first hold their slots', async () => {
    const { clock, take, release, beforeRequest, requests, turns } = await sceneOf(late)
    expect(await beforeRequest()).toEqual({ message: 'requesting a slot', retryInMs: 150 })
    await take(slot0)
    await clock.advance(100)
    expect(turns).toHaveLength(1)
    const held = await beforeRequest()
    expect(held?.message).toBe('the budget of 1 node is used up')
    expect(held?.retryInMs).toBeGreaterThanOrEqual(30_000)
    await clock.advance(10_000)
    expect([turns.length, requests()]).toEqual([1, ['watch']])
    await release(slot0)
    await clock.advance(1_000)
    expect([turns.length, await beforeRequest()]).toEqual([2, undefined])
  })

  test('the first request follows soon where nobody comes first', async () => {
    const { clock, beforeRequest, requests } = await sceneOf(late)
    const pause = await beforeRequest()
    await clock.advance(pause?.retryInMs ?? 0)
    expect([await beforeRequest(), requests()]).toEqual([undefined, ['watch']])
  })

  test('the first request follows at once where the slot was free again before the node could say that it is held', async () => {
    const { clock, take, release, beforeRequest, turns } = await sceneOf(late)
    await beforeRequest()
    await take(slot0)
    await release(slot0)
    await clock.advance(1_000)
    expect([turns.length > 0, await beforeRequest()]).toEqual([true, undefined])
  })
})

describe('a node of a large fleet', () => {
  test('the first in a large fleet asks, the others see the ledger once and sleep', async () => {
    const first = await createSlotLineScene({ agents: 1_000 })
    await first.count(1_000, 1_000)
    expect(await first.askByCount()).toBeUndefined()
    const other = await createSlotLineScene({ agents: 1_000, nodeUid: late })
    await other.count(1_000, 1_000)
    expect(await other.askByCount()).toMatchObject({ message: 'the budget of 1 node is used up' })
    await other.clock.advance(30_000)
    expect([other.requests(), other.server.openWatches()]).toEqual([['watch'], 0])
  })

  test('a node that is near and not prepared makes ready before it asks', async () => {
    const { line, count, askByCount, beforeRequest, requests } = await createSlotLineScene({ agents: 1_000 })
    await count(1_000, 1_000)
    expect([...line.distant()]).toEqual(['s']) // nothing was read that says otherwise
    expect(await askByCount(false)).toEqual({ message: 'requesting a slot', retryInMs: 0 })
    expect([...line.distant()]).toEqual([])
    expect(await beforeRequest()).toBeUndefined()
    expect(requests()).toEqual(['watch'])
  })

  test('nodes wait for the count before they send a request, and ask all the same if it stays missing', async () => {
    const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, view: budgeted({ percent: 10 }) })
    const { clock, line, beforeRequest, requests, turns, missingCounts } = scene
    const pause = await beforeRequest(false)
    expect(pause?.message).toBe('budget unknown: the census has not counted this Skyhook yet')
    expect(pause?.retryInMs).toBeGreaterThan(30_000)
    await clock.advance(10_000)
    expect([requests(), turns, missingCounts.length, ...line.distant()]).toEqual([['watch'], [], 1, 's'])
    expect(await beforeRequest(false)).toBeUndefined()
  })

  test('while the count is of earlier work, all nodes are expected to wait', async () => {
    const { view, edit, count, askByCount } = await createSlotLineScene({ agents: 1_000, nodeUid: late })
    await count(1_000, 3)
    edit({ ...view(), spec: { ...view().spec, packages: { a: { version: '2.0.0', image: 'a' } } } })
    expect(await askByCount()).toMatchObject({ message: 'the budget of 1 node is used up' })
  })

  test('a far node without a ledger asks after a second or two', async () => {
    const { beforeRequest } = await createSlotLineScene({ agents: 1_000, nodeUid: late })
    expect(await beforeRequest()).toEqual({ message: 'requesting a slot', retryInMs: 1_500 })
    expect(await beforeRequest()).toBeUndefined()
  })
})
