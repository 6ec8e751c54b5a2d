import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { ApiError } from '../../kube/errors.ts'
import { createFailureBook } from '../failures/book.ts'
import { watchFacts } from './watch-facts.ts'

function open() {
  const failures = createFailureBook({ clock: createVirtualClock(), random: { number: () => 0, hex: () => '' } })
  let wakes = 0
  const onFact = watchFacts('nodes', { failures, log: pino({ level: 'silent' }), wake: () => void wakes++ })
  const fail = (during: 'list' | 'watch', status: number): void => {
    const error = new ApiError({ status, reason: 'Any', message: `HTTP ${status}` })
    onFact({ fact: 'failed', during, error, willRelist: true, retryInMs: 100 })
  }
  return { onFact, fail, known: () => [...failures.current().keys()], wakes: () => wakes }
}

test('a refused watch is a failure until the next one succeeds', () => {
  const { onFact, fail, known, wakes } = open()
  fail('watch', 403)
  expect([known(), wakes()]).toEqual([['watch nodes'], 1])
  onFact({ fact: 'watch-ended' })
  expect(known()).toHaveLength(1)
  onFact({ fact: 'watching' })
  expect(known()).toEqual([])
})

test('a watch from an expired resourceVersion is not a failure, but a list that fails afterwards is', () => {
  const { fail, known, wakes } = open()
  fail('watch', 410)
  expect([known(), wakes()]).toEqual([[], 0])
  fail('list', 410)
  expect(known()).toEqual(['watch nodes'])
})
