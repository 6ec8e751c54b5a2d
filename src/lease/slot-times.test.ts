import { expect, test } from 'vitest'
import { slotTimeEstimate, readSlotTimes, type RolloutTimes, withSlotTime } from './slot-times.ts'

const after = (seconds: readonly number[], applied = 'a', before: readonly RolloutTimes[] = []) =>
  seconds.reduce((slotTimes, one) => withSlotTime(slotTimes, applied, one * 1_000), before)

test('half of the nodes were out at most as long as the p50 says, which is at most a quarter too long', () => {
  const seconds = Array.from({ length: 100 }, (_, at) => at + 1)
  const { p50Ms = 0, p95Ms = 0, ...rest } = slotTimeEstimate(after(seconds)) ?? {}
  expect(rest).toEqual({ rollouts: 1, nodes: 100 })
  for (const [estimateMs, exactMs] of [
    [p50Ms, 50_000],
    [p95Ms, 95_000],
  ] as const) {
    expect(estimateMs).toBeGreaterThanOrEqual(exactMs)
    expect(estimateMs).toBeLessThanOrEqual(exactMs * 1.26)
  }
})

test('what nobody held has no estimate', () => {
  expect(slotTimeEstimate([])).toBeUndefined()
})

test('the ten latest rollouts are kept, and work that is done again is the latest', () => {
  let slotTimes: readonly RolloutTimes[] = []
  for (let at = 0; at < 12; at++) slotTimes = after([10], `work${at}`, slotTimes)
  expect(slotTimes.map(({ applied }) => applied)).toEqual(Array.from({ length: 10 }, (_, at) => `work${at + 2}`))
  const again = after([10], 'work4', slotTimes)
  expect(again.at(-1)).toMatchObject({ applied: 'work4', lengths: { 11: 2 } })
  expect(again).toHaveLength(10)
})

test('what is published stays below 8 KiB for any number of nodes and lengths', () => {
  let slotTimes: readonly RolloutTimes[] = []
  for (let rollout = 0; rollout < 12; rollout++)
    for (let power = 0; power < 80; power++)
      slotTimes = withSlotTime(slotTimes, `${rollout}`.padStart(16, '0'), 1.3 ** power)
  const many = slotTimes.map(({ applied, lengths }) => ({
    applied,
    lengths: Object.fromEntries(Object.keys(lengths).map((key) => [key, 5_000])),
  }))
  expect(Buffer.byteLength(JSON.stringify(many))).toBeLessThan(8 << 10)
  expect(readSlotTimes(JSON.parse(JSON.stringify(slotTimes)))).toEqual(slotTimes)
})

const good = { applied: 'x', lengths: { 3: 4 } }
test.each<[string, unknown]>([
  ['no list', { 0: good }],
  ['no hash', [{ lengths: { 3: 4 } }]],
  ['an absurd hash', [{ applied: 'x'.repeat(65), lengths: { 3: 4 } }]],
  ['no lengths', [{ applied: 'x' }]],
  ['a class that is none', [{ applied: 'x', lengths: { '-1': 4 } }]],
  ['a class too long', [{ applied: 'x', lengths: { 99: 4 } }]],
  ['a fraction of a node', [{ applied: 'x', lengths: { 3: 1.5 } }]],
  ['fewer than no nodes', [{ applied: 'x', lengths: { 3: -1 } }]],
])('an entry with %s counts for nothing', (_, value) => {
  expect(readSlotTimes(value)).toEqual([])
  expect(readSlotTimes([good, ...(Array.isArray(value) ? (value as unknown[]) : [])])).toEqual([good])
})
