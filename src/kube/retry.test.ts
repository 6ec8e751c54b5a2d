import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError, NoAnswerError } from './errors.ts'
import { exponentialBackoff, pause, retrying } from './retry.ts'

const refused = (status: number, retryAfterMs?: number): ApiError => new ApiError({ status, reason: 'r', message: 'm', retryAfterMs })

async function run(failures: readonly Error[], attempts = 5): Promise<{ result: unknown; slept: number[] }> {
  const left = [...failures]
  const slept: number[] = []
  const result = await retrying(
    async () => {
      const failure = left.shift()
      if (failure !== undefined) throw failure
      return await Promise.resolve('done')
    },
    { attempts, backoff: (attempt) => attempt, sleep: async (ms) => void slept.push(await Promise.resolve(ms)) },
  ).catch((error: unknown) => error)
  return { result, slept }
}

test('overload, trouble and no answer are tried again; Retry-After wins over the backoff', async () => {
  expect(await run([refused(500), refused(429, 7000), new NoAnswerError('x', { maySent: true })])).toEqual({
    result: 'done',
    slept: [0, 7000, 2],
  })
})

test('a refusal is final, and so is the last try', async () => {
  expect(await run([refused(403)])).toMatchObject({ result: { status: 403 }, slept: [] })
  expect(await run([refused(500), refused(501), refused(502)], 3)).toMatchObject({ result: { status: 502 }, slept: [0, 1] })
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
  const pausing = pause(10_000, abort.signal)
  abort.abort(new Error('bye'))
  await expect(pausing).rejects.toThrow('bye')
})
