import { expect, test } from 'vitest'
import { initialBudget, refilled, sampleBytes, spent } from './log-limit.ts'

test('the first thousand lines are shown as they come', () => {
  const budget = spent(initialBudget(0), { lines: 999, bytes: 1 })
  expect([budget.isUsedUp, spent(budget, { lines: 1, bytes: 1 }).isUsedUp]).toEqual([false, true])
})

test('the first 128 KiB are shown as they come', () => {
  const budget = spent(initialBudget(0), { lines: 1, bytes: 128 * 1024 - 1 })
  expect([budget.isUsedUp, spent(budget, { lines: 1, bytes: 1 }).isUsedUp]).toEqual([false, true])
})

test.each([
  [{ lines: 1_000, bytes: 0 }, 4_999, true],
  [{ lines: 1_000, bytes: 0 }, 5_000, false],
  [{ lines: 2_000, bytes: 0 }, 5_000, true],
  [{ lines: 2_000, bytes: 0 }, 205_000, false],
  [{ lines: 0, bytes: 128 * 1024 }, 4_999, true],
  [{ lines: 0, bytes: 128 * 1024 }, 5_000, false],
])('a budget that %j was taken from is used up %i ms later: %j', (amount, laterMs, isUsedUp) => {
  expect(refilled(spent(initialBudget(1_000), amount), 1_000 + laterMs).isUsedUp).toBe(isUsedUp)
})

test('frequent looks at a budget do not refill it sooner', () => {
  let budget = spent(initialBudget(0), { lines: 1_000, bytes: 0 })
  for (let ms = 500; ms < 5_000; ms += 500) budget = refilled(budget, ms)
  expect([budget.isUsedUp, refilled(budget, 5_000).isUsedUp]).toEqual([true, false])
})

test('an hour of endless output is at most twenty thousand lines', () => {
  let budget = initialBudget(0)
  let lines = 0
  for (let ms = 0; ms <= 3_600_000; ms += 500) {
    budget = refilled(budget, ms)
    if (budget.isUsedUp) continue
    lines += 500
    budget = spent(budget, { lines: 500, bytes: 5_000 })
  }
  expect([lines > 10_000, lines < 20_000]).toEqual([true, true])
})

test('nothing is saved up beyond the first part', () => {
  expect(refilled(initialBudget(0), 1e9).left).toEqual(initialBudget(0).left)
})

test.each([
  [{ lines: 0, bytes: 0 }, 128 * 1024],
  [{ lines: 975, bytes: 0 }, 5_000],
  [{ lines: 0, bytes: 127 * 1024 }, 1024],
  [{ lines: 2_000, bytes: 0 }, 0],
])('a budget that %j was taken from has samples of %i bytes', (amount, bytes) => {
  expect(sampleBytes(spent(initialBudget(0), amount))).toBe(bytes)
})
