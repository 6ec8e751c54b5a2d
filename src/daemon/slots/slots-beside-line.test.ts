/** Slots without a line: that of the control plane, and those of joining nodes. */
import { expect, test } from 'vitest'
import {
  budgeted,
  controlPlaneSlot,
  createSlotLineScene,
  full,
  joiningSlot,
  lost,
} from '../../../test/kit/slots/slot-line-scene.ts'

const kinds = [
  ['control-plane', controlPlaneSlot],
  ['bootstrap', joiningSlot],
] as const

test.each(kinds)('a slot that the budget does not count is asked for when it is freed (%s)', async (kind, slot) => {
  const view = budgeted({ count: 0 }, { count: 1 })
  const { clock, line, take, release, list, turns } = await createSlotLineScene({ agents: 1_000, view })
  await take(slot)
  line.afterDenial(view, full(await list()), kind)
  await clock.advance(1_000)
  expect(turns).toEqual([])
  await release(slot)
  await clock.advance(3_000)
  expect(turns).toHaveLength(1)
})

test.each(kinds)(
  'a slot beside the line that another node took is asked for when it is freed (%s)',
  async (kind, slot) => {
    const view = budgeted({ count: 0 }, { count: 1 })
    const { clock, line, take, release, list, turns } = await createSlotLineScene({ agents: 3, view })
    const listing = await list()
    await take(slot)
    line.afterDenial(view, lost(slot, listing), kind)
    await clock.advance(10_000)
    expect(turns).toEqual([])
    await release(slot)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  },
)

test('a node that joins and was beaten says that it waits for other joining nodes', async () => {
  const view = budgeted({ count: 5 }, { count: 1 })
  const { line, take, list } = await createSlotLineScene({ agents: 3, view })
  const listing = await list()
  await take(joiningSlot)
  const { message } = line.afterDenial(view, lost(joiningSlot, listing), 'bootstrap')
  expect(message).toBe('other joining nodes request slots at the same time')
})

test.each([
  ['raised', budgeted({ count: 0 }, { count: 1 }), 1],
  ['left to the interruptionBudget', budgeted({ count: 1 }), 1],
  ['lifted', budgeted({}), 1],
  ['left to a percentage without a count', budgeted({ percent: 50 }), 0],
  ['as before, beside a raised interruptionBudget', budgeted({ count: 9 }, { count: 0 }), 0],
])('a node that joins sees that its budget of 0 is %s', async (_, raised, asked) => {
  const scene = await createSlotLineScene({ agents: 3, view: budgeted({ count: 0 }, { count: 0 }) })
  const { clock, line, view, edit, turns } = scene
  line.afterDenial(view(), { outcome: 'waiting', reason: 'the budget for joining nodes is 0' }, 'bootstrap')
  await clock.advance(1_000)
  edit(raised)
  await clock.advance(1_000)
  expect(turns).toHaveLength(asked)
})
