import { expect, test } from 'vitest'
import { minutesFor } from './minutes.ts'

test('short parts have half of the time, and all of it once the long ones are proven', () => {
  expect(minutesFor(true, { all: 60, spent: 5, longLeft: 3 })).toBe(25)
  expect(minutesFor(true, { all: 60, spent: 31, longLeft: 3 })).toBe(0)
  expect(minutesFor(true, { all: 60, spent: 5, longLeft: 0 })).toBe(55)
})

test('long parts share what is left, and each gets on', () => {
  expect(minutesFor(false, { all: 60, spent: 6, longLeft: 3 })).toBe(18)
  expect(minutesFor(false, { all: 60, spent: 50, longLeft: 1 })).toBe(10)
  expect(minutesFor(false, { all: 60, spent: 70, longLeft: 2 })).toBe(1)
})

test('each part takes as long as it takes if nobody limits the minutes', () => {
  for (const isShort of [true, false])
    expect(minutesFor(isShort, { all: undefined, spent: 600, longLeft: 3 })).toBeUndefined()
})
