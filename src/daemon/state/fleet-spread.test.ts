import { expect, test } from 'vitest'
import { newsDelayMs, readDelayMs } from './fleet-spread.ts'

function expectLongest(delaysMs: readonly number[], ms: number): void {
  expect(Math.max(...delaysMs)).toBeLessThanOrEqual(ms)
  expect(Math.max(...delaysMs)).toBeGreaterThanOrEqual(0.95 * ms)
}

test.for([
  { nodes: 100, readMs: 0, newsMs: 0 },
  { nodes: 300, readMs: 300, newsMs: 3_000 },
  { nodes: 1_000, readMs: 1_000, newsMs: 10_000 },
  { nodes: 10_000, readMs: 5_000, newsMs: 10_000 },
])(
  '$nodes nodes read an edit within $readMs ms, and say that they wait within $newsMs ms.',
  ({ nodes, readMs, newsMs }) => {
    const numbers = Array.from({ length: nodes }, (_, number) => number)
    const reads = numbers.map((number) => readDelayMs(nodes, number / nodes))
    const news = numbers.map((number) => newsDelayMs(nodes, `node-${number}`))
    expectLongest(reads, readMs)
    expectLongest(news, newsMs)
  },
)

test('A node has its turn at the same time in each rollout.', () => {
  expect(newsDelayMs(1_000, 'node-7')).toBe(newsDelayMs(1_000, 'node-7'))
})
