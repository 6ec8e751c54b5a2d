import { expect, test } from 'vitest'
import { worstOf } from './plan-builder.ts'
import type { Failure } from './snapshot.ts'

const failure: Failure = { reason: 'ApiServerUnavailable', message: 'no answer', sinceMs: 1_000 }

test.for([
  { of: 'A failure', answerMs: 0, publishedAtMs: 4_000 },
  { of: 'A failure while the API server is slow', answerMs: 1_000, publishedAtMs: 6_000 },
  { of: 'A failure while the API server does not answer', answerMs: 60_000, publishedAtMs: 7_000 },
])('$of is worth a reason once the next attempts have not ended it.', ({ answerMs, publishedAtMs }) => {
  const failures = new Map([['publish', failure]])
  const worstAt = (nowMs: number) => worstOf({ failures, nowMs, answerMs }, () => true)
  expect(worstAt(publishedAtMs - 1)).toEqual({ failure: undefined, recheckAtMs: publishedAtMs })
  expect(worstAt(publishedAtMs)).toEqual({ failure, recheckAtMs: Infinity })
})
