/** What a node does in place of its first request for a slot. */
import { describe, expect, test } from 'vitest'
import { budgeted, createSlotLineScene, early, late } from '../../../test/kit/slots/slot-line-scene.ts'

test('the first request of a node in a small fleet is not held up', async () => {
  const { beforeRequest, requests } = await createSlotLineScene({ agents: 10, nodeUid: late })
  expect([beforeRequest(), requests()]).toEqual([undefined, []])
})

describe('a node of a large fleet', () => {
  test('the first in a large fleet asks, the others see the ledger once and sleep', async () => {
    const first = await createSlotLineScene({ agents: 1_000 })
    await first.count(1_000, 1_000)
    expect(await first.askByCount()).toBeUndefined()
    const other = await createSlotLineScene({ agents: 1_000, nodeUid: late })
    await other.count(1_000, 1_000)
    await other.askByCount()
    expect([other.reasons, other.turns]).toEqual([['the budget of 1 node is used up'], []])
    await other.clock.advance(30_000)
    expect([other.requests(), other.server.openWatches()]).toEqual([['get s-3f2504e0.ledger'], 0])
  })

  test('a node that is near and not prepared makes ready before it asks', async () => {
    const { line, count, askByCount, beforeRequest, requests } = await createSlotLineScene({ agents: 1_000 })
    await count(1_000, 1_000)
    expect([...line.distant()]).toEqual(['s']) // nothing that was read contradicts it
    expect(await askByCount(false)).toEqual({ message: 'requesting a slot', retryInMs: 0 })
    expect([...line.distant()]).toEqual([])
    expect(beforeRequest()).toBeUndefined()
    expect(requests()).toEqual(['get s-3f2504e0.ledger', 'watch'])
  })

  test('nodes wait for the count of a percentage, and let somebody look for the census', async () => {
    const scene = await createSlotLineScene({ agents: 1_000, nodeUid: early, view: budgeted({ percent: 10 }) })
    const { clock, line, count, beforeRequest, requests, turns, missingCounts } = scene
    expect(beforeRequest(false)?.message).toBe('budget unknown: the census has not counted this Skyhook yet')
    await clock.advance(10_000)
    expect([turns, missingCounts.length > 0, ...line.distant()]).toEqual([[], true, 's'])
    expect(requests().filter((one) => one === 'watch')).toHaveLength(1)
    await count(1_000, 1_000)
    await clock.advance(3_000)
    expect([turns.length > 0, beforeRequest()]).toEqual([true, undefined])
  })

  test('while the count is of earlier work, all nodes count as waiting', async () => {
    const ask = async (nodeUid: string) => {
      const { view, clock, edit, count, beforeRequest, turns } = await createSlotLineScene({ agents: 1_000, nodeUid })
      await count(1_000, 3)
      edit({ ...view(), spec: { ...view().spec, packages: { a: { version: '2.0.0', image: 'a' } } } })
      expect(beforeRequest()?.message).toBe('requesting a slot')
      await clock.advance(5_000)
      return turns.length
    }
    expect([await ask(early), await ask(late)]).toEqual([1, 0])
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
})
