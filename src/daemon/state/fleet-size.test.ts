import { expect, test } from 'vitest'
import { createFleetSize } from './fleet-size.ts'

test('the number of agents is the estimate until it was counted', () => {
  const fleet = createFleetSize(100)
  expect([fleet.agents(), fleet.isCounted()]).toEqual([100, false])
  fleet.observe(3)
  expect([fleet.agents(), fleet.isCounted()]).toEqual([3, true])
})

test('a count of none is no count', () => {
  const fleet = createFleetSize(0)
  fleet.observe(0)
  expect([fleet.agents(), fleet.isCounted()]).toEqual([1, false])
})
