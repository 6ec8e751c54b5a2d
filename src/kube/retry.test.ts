import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError, NoResponseError } from './errors.ts'
import { exponentialBackoff, abortableSleep, retryTransient } from './retry.ts'

const apiError = (status: number, retryAfterMs?: number): ApiError =>
  new ApiError({ status, reason: 'r', message: 'm', retryAfterMs })

async function runRetries(
  failures: readonly Error[],
  maxAttempts = 5,
): Promise<{ result: unknown; sleptMs: number[] }> {
  const remainingFailures = [...failures]
  const sleptMs: number[] = []
  const result = await retryTransient(
    async () => {
      const failure = remainingFailures.shift()
      if (failure !== undefined) throw failure
      return await Promise.resolve('done')
    },
    { maxAttempts, backoff: (attempt) => attempt, sleep: async (ms) => void sleptMs.push(await Promise.resolve(ms)) },
  ).catch((error: unknown) => error)
  return { result, sleptMs }
}

test('overload, trouble and no answer are tried again; Retry-After wins over the backoff', async () => {
  expect(
    await runRetries([apiError(500), apiError(429, 7000), new NoResponseError('x', { mayHaveBeenSent: true })]),
  ).toEqual({
    result: 'done',
    sleptMs: [0, 7000, 2],
  })
})

test('a refusal is final, and so is the last try', async () => {
  expect(await runRetries([apiError(403)])).toMatchObject({ result: { status: 403 }, sleptMs: [] })
  expect(await runRetries([apiError(500), apiError(501), apiError(502)], 3)).toMatchObject({
    result: { status: 502 },
    sleptMs: [0, 1],
  })
})

test('the backoff doubles, spreads over its upper half, and ends at 30 s', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
      const full = Math.min(30_000, 800 * 2 ** attempt)
      const ms = exponentialBackoff(() => random)(attempt)
      expect(ms).toBeGreaterThanOrEqual(full / 2)
      expect(ms).toBeLessThanOrEqual(full)
    }),
  )
})

test('an aborted pause throws the reason of the signal', async () => {
  const abort = new AbortController()
  const pausing = abortableSleep(10_000, abort.signal)
  abort.abort(new Error('bye'))
  await expect(pausing).rejects.toThrow('bye')
})
