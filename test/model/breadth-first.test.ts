import { expect, test } from 'vitest'
import { search, type SearchResult, type Transition } from './breadth-first.ts'

const go = (to: number, more: Partial<Transition<number>> = {}): Transition<number> => ({
  action: `to ${to}`,
  to,
  ...more,
})

/** From 0 on; a run may end in 9. */
const explore = (...transitions: readonly (readonly Transition<number>[])[]): SearchResult =>
  search<number>({
    initial: 0,
    next: (state) => transitions[state] ?? [],
    keyOf: String,
    isEnd: (state) => state === 9,
  })

test('a search visits each state once', () => {
  expect(explore([go(1), go(2)], [go(2)], [go(0), go(9)])).toEqual({ outcome: 'holds', states: 4 })
})

test('a search names a shortest way to a violation', () => {
  const result = explore([go(1), go(2)], [go(2)], [go(0, { violation: 'back again' })])
  expect(result).toMatchObject({ outcome: 'violated', violation: 'back again', path: ['to 2', 'to 0'] })
})

test('a state from which no way leads to an end is a violation, though runs go on forever', () => {
  const result = explore([go(9), go(1)], [go(2)], [go(1)])
  expect(result).toMatchObject({ outcome: 'violated', violation: 'never complete', path: ['to 1'] })
})

test('an end that only a fault leads to is out of reach', () => {
  expect(explore([go(9), go(1)], [go(9, { isFault: true })])).toMatchObject({ violation: 'never complete' })
})
