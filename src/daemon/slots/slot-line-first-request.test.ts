/** What a node does instead of its first request for a slot. */
import { describe, expect, test } from 'vitest'
import { budgeted, createSlotLineScene, early, late } from '../../../test/support/slot-line-scene.ts'

test('the first request of a node in a small fleet is not held up', async () => {
  const { beforeRequest, requests } = await createSlotLineScene({ agents: 10, nodeUid: late })
  expect([beforeRequest(), requests()]).toEqual([undefined, []])
})

describe('a node of a large fleet', () => {
  test('the first in a large fleet asks, the others see the ledger once and sleep', async () => {
    const first = await createSlotLineScene({ agents: 1_000 })
    await first.count(1_000, 1_000, undefined, 5)
    expect(await first.askByCount()).toBeUndefined()
    const other = await createSlotLineScene({ agents: 1_000, nodeUid: late })
    await other.count(1_000, 1_000, undefined, 5)
    await other.askByCount()
    expect([other.reasons, other.turns]).toEqual([['the budget of 1 node is used up'], []])
    await other.clock.advance(30_000)
    expect([other.requests(), other.server.openWatches()]).toEqual([['get s-3f2504e0.ledger'], 0])
  })

  test('a node that is near and not prepared makes ready before it asks', async () => {
    const { line, count, askByCount, beforeRequest, requests } = await createSlotLineScene({ agents: 1_000 })
    await count(1_000, 1_000, undefined, 5)
    expect([...line.distant()]).toEqual(['s']) // nothing was read that says otherwise
    expect(await askByCount(false)).toEqual({ message: 'requesting a slot', retryInMs: 0 })
    expect([...line.distant()]).toEqual([])
    expect(beforeRequest()).toBeUndefined()
    expect(requests()).toEqual(['get s-3f2504e0.ledger'])
  })

  test('nodes wait for the count of a percentage, and let somebody look for the census', async () => {
    const scene = await createSlotLineScene({ agents: 1_000, nodeUid: early, view: budgeted({ percent: 10 }) })
    const { clock, line, count, beforeRequest, requests, turns, missingCounts } = scene
    expect(beforeRequest(false)?.message).toBe('budget unknown: the census has not counted this Skyhook yet')
    await clock.advance(10_000)
    expect([turns, missingCounts.length > 0, ...line.distant()]).toEqual([[], true, 's'])
    expect(requests().filter((one) => one === 'watch')).toHaveLength(1)
    await count(1_000, 1_000, undefined, 100)
    await clock.advance(1_000)
    expect([turns.length > 0, beforeRequest()]).toEqual([true, undefined])
  })

  test('while the count is of earlier work, a node waits for the next one, not for long', async () => {
    const { view, clock, edit, count, beforeRequest, turns } = await createSlotLineScene({
      agents: 1_000,
      drawn: 0.01,
    })
    await count(1_000, 3)
    edit({ ...view(), spec: { ...view().spec, packages: { a: { version: '2.0.0', image: 'a' } } } })
    expect(beforeRequest()?.message).toBe('requesting a slot')
    await clock.advance(1_000)
    expect(turns).toEqual([])
    await clock.advance(10_000)
    expect(turns.length).toBeGreaterThan(0)
  })

  test('nodes without a ledger come forward by lot', async () => {
    const ask = async (drawn: number) => {
      const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, drawn })
      scene.beforeRequest()
      await scene.clock.advance(10_000)
      return [scene.turns.length > 0, scene.missingCounts.length > 0]
    }
    expect([await ask(0.01), await ask(0.5)]).toEqual([
      [true, true],
      [false, true],
    ])
  })

  test('nodes come forward by lot where the census names nobody', async () => {
    const ask = async (drawn: number) => {
      const { clock, count, beforeRequest, turns } = await createSlotLineScene({ agents: 1_000, nodeUid: late, drawn })
      await count(1_000, 110, undefined, 'not named')
      beforeRequest()
      await clock.advance(10_000)
      return turns.length > 0
    }
    expect([await ask(0.01), await ask(0.5)]).toEqual([true, false])
  })
})
