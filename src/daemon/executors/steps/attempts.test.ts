import { expect, test } from 'vitest'
import { createAttempts } from './attempts.ts'

test('an attempt that nobody looked at has no state', () => {
  expect(createAttempts().stateOf('x')).toBeUndefined()
})

test('an attempt ends with a tail of its log where there is one', () => {
  const attempts = createAttempts()
  attempts.ended('x', { outcome: 'exited', code: 0 }, '')
  attempts.ended('y', { outcome: 'exited', code: 1 }, 'tail')
  expect([...attempts.current().values()]).toEqual([
    { state: 'ended', end: { outcome: 'exited', code: 0 } },
    { state: 'ended', end: { outcome: 'exited', code: 1 }, logTail: 'tail' },
  ])
})

test('a forgotten attempt is gone', () => {
  const attempts = createAttempts()
  attempts.running('x')
  attempts.cancel('x')
  attempts.forget('x')
  expect([attempts.current().size, attempts.isCanceled('x')]).toEqual([0, false])
})
