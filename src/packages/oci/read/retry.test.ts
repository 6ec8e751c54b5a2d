import { describe, expect, test } from 'vitest'
import { ImageError, type ImageErrorCode } from '../errors.ts'
import { parseRetryAfter, retryTransient } from './retry.ts'

const neverAborted = new AbortController().signal

describe('repeating', () => {
  const run = async (codes: ImageErrorCode[], deadlineAtMs = Infinity) => {
    let nowMs = 0
    const clock = { now: () => nowMs, random: () => 0.5, sleep: async (ms: number) => void (nowMs += ms) }
    const attempt = async () => {
      const code = codes.shift()
      if (code !== undefined) throw new ImageError(code, 'it failed')
      return 'done'
    }
    const outcome = await retryTransient(attempt, deadlineAtMs, neverAborted, clock).catch(
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
  ] as [ImageErrorCode[], [string, number]][])('%j', async (codes, expected) => {
    expect(await run(codes)).toEqual(expected)
  })

  test('ends before a wait that would pass the deadline', async () => {
    expect(await run(['unreachable', 'unreachable'], 700)).toEqual(['unreachable', 250])
  })
})

test.each([
  [undefined, undefined],
  ['120', 120_000],
  ['Thu, 01 Jan 1970 00:00:10 GMT', 7_000],
  ['Thu, 01 Jan 1970 00:00:01 GMT', 0],
  ['soon', undefined],
])('Retry-After %s', (header, expected) => {
  expect(parseRetryAfter(header, 3_000)).toBe(expected)
})
