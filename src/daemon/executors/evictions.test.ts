import { expect, test } from 'vitest'
import { evictionRetryMs } from './evictions.ts'

test('a refused eviction is tried again soon, then less and less often', () => {
  let atMs = 0
  const attemptTimesMs: number[] = []
  for (let refusal = 0; refusal < 6; refusal++) attemptTimesMs.push((atMs += evictionRetryMs(atMs, 0.5)))
  expect(attemptTimesMs).toEqual([1_000, 2_000, 4_000, 8_000, 13_000, 18_000])
  expect([evictionRetryMs(60_000, 0), evictionRetryMs(60_000, 1)]).toEqual([3_750, 6_250])
})
