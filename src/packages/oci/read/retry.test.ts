import { describe, expect, test } from 'vitest'
import { systemRandom } from '../../../daemon/platform/system-clock.ts'
import type { Clock } from '../../../schemas/clock.ts'
import { ImageError } from '../errors.ts'
import type { ImageErrorCode } from '../../../schemas/catalogue/reason-codes.ts'
import { parseRetryAfter, retryTransient } from './retry.ts'

const neverAborted = new AbortController().signal

describe('repeating', () => {
  const run = async (codes: ImageErrorCode[], retryForMs = Infinity) => {
    let nowMs = 0
    const clock: Clock = {
      wallMs: () => 0,
      steadyMs: () => 0,
      monotonicMs: () => nowMs,
      startTimer(delayMs, callback) {
        nowMs += delayMs
        queueMicrotask(callback)
        return () => {}
      },
    }
    const random = { ...systemRandom, number: () => 0.5 }
    const attempt = async () => {
      const code = codes.shift()
      if (code !== undefined) throw new ImageError(code, 'it failed')
      return 'done'
    }
    const outcome = await retryTransient(attempt, { clock, random, retryForMs, signal: neverAborted }).catch(
      (error: ImageError) => error.code,
    )
    return [outcome, nowMs]
  }

  test.each([
    [[], ['done', 0]],
    [
      ['unreachable', 'unavailable', 'rate-limited'],
      ['done', 250 + 500 + 1000],
    ],
    [
      ['unreachable', 'unreachable', 'unreachable', 'tls'],
      ['tls', 1750],
    ],
    [['not-found'], ['not-found', 0]],
  ] as [ImageErrorCode[], [string, number]][])(
    'failures %j are retried with doubling waits',
    async (codes, expected) => {
      expect(await run(codes)).toEqual(expected)
    },
  )

  test('retrying ends before a wait that would pass the deadline', async () => {
    expect(await run(['unreachable', 'unreachable'], 700)).toEqual(['unreachable', 250])
  })
})

test.each([
  [undefined, undefined],
  ['120', 120_000],
  ['Thu, 01 Jan 1970 00:00:10 GMT', 7_000],
  ['Thu, 01 Jan 1970 00:00:01 GMT', 0],
  ['soon', undefined],
])('Retry-After %s is read as milliseconds, counted from the time of the registry', (header, expected) => {
  expect(parseRetryAfter({ 'retry-after': header, date: 'Thu, 01 Jan 1970 00:00:03 GMT' })).toBe(expected)
})

test('a Retry-After that is a date means nothing without the time of the registry', () => {
  expect(parseRetryAfter({ 'retry-after': 'Thu, 01 Jan 1970 00:00:10 GMT' })).toBeUndefined()
})
