import { expect, test } from 'vitest'
import { createFleetSize } from './fleet-size.ts'

test('the number of agents is the estimate until it was counted', () => {
  const fleet = createFleetSize(100)
  expect(fleet.agents()).toBe(100)
  fleet.observe(3)
  expect(fleet.agents()).toBe(3)
})

test('a count of zero is ignored', () => {
  const fleet = createFleetSize(0)
  fleet.observe(0)
  expect(fleet.agents()).toBe(1)
})
