import { expect, test } from 'vitest'
import { nodeStatuses, type NodeStatus } from '../../../schemas/skyhook.ts'
import { barText, completePercent, shownStatuses, statusName } from './rollout-texts.ts'

const bars: readonly (readonly [number, Partial<Record<NodeStatus, number>>, number, string])[] = [
  [10, { complete: 10 }, 100, '##############################'],
  [1_000, { complete: 999, erroring: 1 }, 99, '#############################!'],
  [3, { complete: 1, in_progress: 1, waiting: 1 }, 33, '##########++++++++++..........'],
  [4, { blocked: 2, unknown: 2 }, 0, 'xxxxxxxxxxxxxxx???????????????'],
]
for (const [selected, byStatus, percent, bar] of bars)
  test(`the bar of ${JSON.stringify(byStatus)} of ${selected} nodes is 30 wide and has a place for each state`, () => {
    expect(barText({ selected, byStatus })).toBe(bar)
    expect(completePercent({ selected, byStatus })).toBe(percent)
  })

test('every state is shown, in words', () => {
  expect(new Set(shownStatuses)).toEqual(new Set(nodeStatuses))
  expect(shownStatuses.map(statusName)).toContain('in progress')
})
