import { expect, test } from 'vitest'
import { createFleetSize, readDelayMs, waitReportDelayMs } from './fleet-size.ts'

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

const longest = (delaysMs: readonly number[]): number => Math.max(...delaysMs)

test.for([
  { nodes: 100, readMs: 0, reportMs: 0 },
  { nodes: 300, readMs: 300, reportMs: 3_000 },
  { nodes: 1_000, readMs: 1_000, reportMs: 10_000 },
  { nodes: 10_000, readMs: 5_000, reportMs: 10_000 },
])(
  '$nodes nodes read an edit within $readMs ms, and say that they wait within $reportMs ms.',
  ({ nodes, readMs, reportMs }) => {
    const numbers = Array.from({ length: nodes }, (_, number) => number)
    const reads = numbers.map((number) => readDelayMs(nodes, number / nodes))
    const reports = numbers.map((number) => waitReportDelayMs(nodes, `node-${number}`))
    expect(longest(reads)).toBeGreaterThanOrEqual(0.95 * readMs)
    expect(longest(reads)).toBeLessThanOrEqual(readMs)
    expect(longest(reports)).toBeGreaterThanOrEqual(0.95 * reportMs)
    expect(longest(reports)).toBeLessThanOrEqual(reportMs)
  },
)

test('A node has its turn at the same time in each rollout.', () => {
  expect(waitReportDelayMs(1_000, 'node-7')).toBe(waitReportDelayMs(1_000, 'node-7'))
})
