import { expect, test } from 'vitest'
import { durationMs } from './duration.ts'

test.each([
  ['0', 0],
  ['46s', 46_000],
  ['1m30s', 90_000],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['2.s', 2000],
  ['1h1m1s1ms', 3_661_001],
  ['500us', 0.5],
  ['500µs', 0.5],
  ['1000000ns', 1],
])('%s is %s ms', (text, ms) => {
  expect(durationMs(text)).toBeCloseTo(ms, 6)
})

test.each(['', '5', '-1s', 's', '.s', '1d', '1 s', '1s ', '1S', '1e3s', '1..5s'])('%j is no duration', (text) => {
  expect(durationMs(text)).toBeUndefined()
})
