import { expect, test } from 'vitest'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { ApiError, NoResponseError } from '../../kube/errors.ts'
import { createFailureBook } from './book.ts'

const task = { operation: 'update the Node', action: 'publish' } as const

/** The pauses after ten consecutive failures. */
async function pauses(error: Error): Promise<readonly number[]> {
  const clock = createVirtualClock()
  const book = createFailureBook({ clock, random: { number: () => 0, hex: () => '' } })
  const all: number[] = []
  for (let count = 0; count < 10; count++) {
    book.record('key', task, error)
    const pauseMs = book.notBeforeMs('key') - clock.wallMs()
    all.push(Math.round(pauseMs / 1_000))
    await clock.advance(pauseMs)
  }
  return all
}

test('the pause after a refusal doubles up to a minute', async () => {
  const refused = new ApiError({ status: 403, reason: 'Forbidden', message: 'no' })
  expect(await pauses(refused)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60])
})

test('the pause is 15 s at most while the API server is away, because slots wait for it', async () => {
  const away = new NoResponseError('no answer', { mayHaveBeenSent: false, cause: undefined })
  expect(await pauses(away)).toEqual([1, 2, 4, 8, 15, 15, 15, 15, 15, 15])
})

test('a pause that the server asks for is kept, up to a minute', async () => {
  const busy = (retryAfterMs: number) =>
    new ApiError({ status: 429, reason: 'TooManyRequests', message: '', retryAfterMs })
  expect((await pauses(busy(20_000)))[0]).toBe(20)
  expect((await pauses(busy(600_000)))[0]).toBe(60)
})

test('a failure keeps its time and message while only numbers in it change, and goes with a success', async () => {
  const clock = createVirtualClock()
  const book = createFailureBook({ clock, random: { number: () => 0, hex: () => '' } })
  const refused = (message: string) => new ApiError({ status: 403, reason: 'Forbidden', message })
  const first = book.record('key', task, refused('attempt 1'))
  await clock.advance(1_000)
  expect(book.record('key', task, refused('attempt 2'))).toEqual(first)
  expect(first.message).toMatch(/^cannot update the Node: HTTP 403: attempt 1: compare the agent's roles/)
  book.clear('key')
  expect([book.current().size, book.notBeforeMs('key')]).toEqual([0, 0])
})
