import { expect, test } from 'vitest'
import { minutesFor } from './minutes.ts'

test('short parts share half of the time, and all of it once the long ones are proven', () => {
  expect(minutesFor({ all: 60, spent: 0, shortLeft: 3, longLeft: 3 })).toBe(10)
  expect(minutesFor({ all: 60, spent: 10, shortLeft: 1, longLeft: 3 })).toBe(20)
  expect(minutesFor({ all: 60, spent: 10, shortLeft: 1, longLeft: 0 })).toBe(50)
})

test('long parts share what is left', () => {
  expect(minutesFor({ all: 60, spent: 6, shortLeft: 0, longLeft: 3 })).toBe(18)
  expect(minutesFor({ all: 60, spent: 50, shortLeft: 0, longLeft: 1 })).toBe(10)
})

test('each part has a minute, however late it is', () => {
  expect(minutesFor({ all: 5, spent: 9, shortLeft: 2, longLeft: 3 })).toBe(1)
  expect(minutesFor({ all: 60, spent: 70, shortLeft: 0, longLeft: 2 })).toBe(1)
})

test('each part takes as long as it takes if nobody limits the minutes', () => {
  expect(minutesFor({ all: undefined, spent: 600, shortLeft: 1, longLeft: 3 })).toBeUndefined()
})
