import { expect, test } from 'vitest'
import { settleMs, writePaceMs } from './plan.ts'

test.for([
  { of: 'an API server that has not been asked', pace: {}, waitMs: 700, progressMs: 1_000 },
  { of: 'a fast API server', pace: { answerMs: 5 }, waitMs: 700, progressMs: 1_000 },
  { of: 'a slow one', pace: { answerMs: 400 }, waitMs: 2_000, progressMs: 2_000 },
  { of: 'one that does not answer', pace: { answerMs: 30_000 }, waitMs: 6_000, progressMs: 6_000 },
  { of: 'a large cluster', pace: { answerMs: 5, spreadMs: 6_000 }, waitMs: 6_000, progressMs: 1_000 },
  { of: 'a slow one of a large cluster', pace: { answerMs: 400, spreadMs: 100 }, waitMs: 2_000, progressMs: 2_000 },
])(
  'With $of, a wait is written once it has lasted $waitMs ms, progress every $progressMs ms.',
  ({ pace, waitMs, progressMs }) => {
    expect([settleMs(pace), writePaceMs(1_000, pace)]).toEqual([waitMs, progressMs])
  },
)
