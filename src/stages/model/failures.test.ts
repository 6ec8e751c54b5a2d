import { expect, test } from 'vitest'
import { worstOf } from './failures.ts'
import type { Failure } from './snapshot.ts'

const failure: Failure = { reason: 'ApiServerUnavailable', message: 'no answer', sinceMs: 1_000 }

test('A failure is worth a reason once the next attempts have not ended it.', () => {
  const failures = new Map([['publish', failure]])
  const worstAt = (nowMs: number) => worstOf({ failures, nowMs }, () => true)
  expect(worstAt(3_999)).toEqual({ failure: undefined, recheckAtMs: 4_000 })
  expect(worstAt(4_000)).toEqual({ failure, recheckAtMs: Infinity })
})
