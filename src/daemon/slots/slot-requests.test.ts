import { expect, test } from 'vitest'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { skyhookScope } from '../../lease/names.ts'
import { createUnansweredCreations } from './slot-requests.ts'

const [a, b] = ['a', 'b'].map((name) => skyhookScope({ name, uid: name })) as [
  ReturnType<typeof skyhookScope>,
  ReturnType<typeof skyhookScope>,
]
const unknown = (unansweredIndex: number) => ({ outcome: 'unknown', error: undefined, unansweredIndex }) as const

test('an unanswered creation counts in its scope for as long as the API server may carry it out', async () => {
  const clock = createVirtualClock()
  const creations = createUnansweredCreations(clock)
  creations.enter(a, unknown(3))
  expect([creations.indexIn(a), creations.indexIn(b)]).toEqual([3, undefined])
  await clock.advance(59_999)
  expect(creations.indexIn(a)).toBe(3)
  expect([creations.endsInMs(a), creations.endsInMs(b)]).toEqual([1, Infinity])
  await clock.advance(1)
  expect([creations.indexIn(a), creations.endsInMs(a)]).toEqual([undefined, Infinity])
})

test('an answer to a later creation ends the doubt, and a LIST that admits nothing does not', () => {
  const creations = createUnansweredCreations(createVirtualClock())
  creations.enter(a, unknown(3))
  creations.enter(a, { outcome: 'waiting', reason: '' })
  creations.enter(a, { outcome: 'unknown', error: undefined })
  expect(creations.indexIn(a)).toBe(3)
  creations.enter(a, { outcome: 'lost', reason: '', lease: '' })
  expect(creations.indexIn(a)).toBeUndefined()
})
