/** Slots that have no line: that of the control plane, and those of nodes that join. */
import { expect, test } from 'vitest'
import type { Pause } from './slot-line.ts'
import { budgeted, createSlotLineScene, full, lost, slot0 } from '../../../test/kit/slots/slot-line-scene.ts'

test.each(['afterControlPlaneDenial', 'afterBootstrapDenial'] as const)(
  'a slot that the budget does not count is asked for when it is freed, whatever the budget is (%s)',
  async (after) => {
    const withoutCount = budgeted({ percent: 50 })
    const scene = await createSlotLineScene({ agents: 3, view: withoutCount })
    const { clock, line, view, take, release, list, turns } = scene
    await take(slot0)
    line[after](view(), full(await list()))
    await clock.advance(1_000)
    await release(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  },
)

test.each(['afterControlPlaneDenial', 'afterBootstrapDenial'] as const)(
  'a slot beside the line that another node was faster to take is asked for when it is freed (%s)',
  async (after) => {
    const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 0 }, { count: 1 }) })
    const { clock, line, view, take, release, list, turns } = scene
    const listing = await list()
    await take(slot0)
    line[after](view(), lost(slot0, listing))
    await clock.advance(10_000)
    expect(turns).toEqual([])
    await release(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  },
)

test('a joining node that was beaten asks soon where other slots are free, and else says that none is', async () => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 0 }, { count: 2 }) })
  const { line, view, list } = scene
  const listing = await list()
  const lostBeside = (othersFree: number): Pause => line.afterBootstrapDenial(view(), lost(slot0, listing, othersFree))
  const message = 'other nodes ask at the same time'
  expect([lostBeside(1), lostBeside(1)]).toEqual([
    { message, retryInMs: 150 },
    { message, retryInMs: 300 },
  ])
  expect(lostBeside(0).message).toBe('the budget of 2 joining nodes is used up')
})

test.each([
  ['raised', budgeted({ count: 0 }, { count: 1 }), 1],
  ['left to the interruptionBudget', budgeted({ count: 1 }), 1],
  ['lifted', budgeted({}), 1],
  ['left to a percentage without a count', budgeted({ percent: 50 }), 1],
  ['as before, beside a raised interruptionBudget', budgeted({ count: 9 }, { count: 0 }), 0],
])('a node that joins sees that its budget of 0 is %s', async (_, raised, asked) => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 0 }, { count: 0 }) })
  const { clock, line, view, edit, turns } = scene
  line.afterBootstrapDenial(view(), { outcome: 'waiting', reason: 'the budget for joining nodes is 0' })
  await clock.advance(1_000)
  edit(raised)
  await clock.advance(1_000)
  expect(turns).toHaveLength(asked)
})
