import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createVirtualClock } from '../../test/kit/virtual-clock.ts'
import { backoffMs } from '../schemas/backoff.ts'
import { ApiError, NoResponseError } from './errors.ts'
import { requestBackoff, retryTransient } from './retry.ts'

const apiError = (status: number, retryAfterMs?: number): ApiError =>
  new ApiError({ status, reason: 'r', message: 'm', retryAfterMs })

async function runRetries(
  failures: readonly Error[],
  maxAttempts = 5,
): Promise<{ result: unknown; attemptedAtMs: number[] }> {
  const clock = createVirtualClock()
  const remainingFailures = [...failures]
  const attemptedAtMs: number[] = []
  const random = { number: () => 0, hex: () => '' }
  const retrying = retryTransient(
    async () => {
      attemptedAtMs.push(clock.monotonicMs())
      const failure = remainingFailures.shift()
      if (failure !== undefined) throw failure
      return await Promise.resolve('done')
    },
    { clock, random, maxAttempts },
  ).catch((error: unknown) => error)
  await clock.advance(90_000)
  return { result: await retrying, attemptedAtMs }
}

test('overload, server errors and no answer are tried again; Retry-After takes precedence over the backoff', async () => {
  expect(
    await runRetries([apiError(500), apiError(429, 7000), new NoResponseError('x', { mayHaveBeenSent: true })]),
  ).toEqual({ result: 'done', attemptedAtMs: [0, 800, 7_800, 11_000] })
})

test('a Retry-After of 0 counts as none, and one of a day is cut to a minute', async () => {
  expect(await runRetries([apiError(429, 0), apiError(429, 86_400_000)])).toEqual({
    result: 'done',
    attemptedAtMs: [0, 800, 60_800],
  })
})

test('a refusal and the last attempt are final', async () => {
  expect(await runRetries([apiError(403)])).toMatchObject({ result: { status: 403 }, attemptedAtMs: [0] })
  expect(await runRetries([apiError(500), apiError(501), apiError(502)], 3)).toMatchObject({
    result: { status: 502 },
    attemptedAtMs: [0, 800, 2_400],
  })
})

test('the backoff doubles, spreads over its upper half, and ends at 30 s', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const full = Math.min(30_000, 800 * 2 ** (failures - 1))
      const ms = backoffMs(failures, requestBackoff, random)
      expect(ms).toBeGreaterThanOrEqual(full / 2)
      expect(ms).toBeLessThanOrEqual(full)
    }),
  )
})
