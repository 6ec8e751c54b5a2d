import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { countIn, milliQuantity } from './quantity.ts'

test.each([
  ['500m', 500n],
  ['2', 2_000n],
  [2, 2_000n],
  [0.5, 500n],
  ['1.5', 1_500n],
  ['.5', 500n],
  ['1.', 1_000n],
  ['512Mi', 536_870_912_000n],
  ['1.5Gi', 1_610_612_736_000n],
  ['128M', 128_000_000_000n],
  ['1k', 1_000_000n],
  ['1e3', 1_000_000n],
  ['1E2', 100_000n],
  ['1E', 1_000_000_000_000_000_000_000n], // exa, not an exponent
  ['15e-1', 1_500n],
  ['1n', 1n], // below a thousandth: rounded up, never to 0
  ['0', 0n],
  ['+1', 1_000n],
])('the quantity %s has %s thousandths', (text, milli) => {
  expect(milliQuantity(text)).toBe(milli)
})

test.each(['', '.', 'm', '-1', '1 Mi', '1mi', '1KiB', 'abc', '1e', '0x10', '1e999', Number.NaN, Infinity])(
  '%s is not a quantity',
  (text) => {
    expect(milliQuantity(text)).toBeUndefined()
  },
)

test.each([
  ['1500m', '1', 2n],
  ['1500m', '1m', 1_500n],
  ['512Mi', '1Mi', 512n],
  ['1Gi', '1M', 1_074n],
  ['1', '0', undefined],
])('the quantity %s counted in %s is %s', (quantity, divisor, count) => {
  expect(countIn(quantity, divisor)).toBe(count)
})

test('a whole number is its own quantity', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (number) => {
      expect(milliQuantity(String(number))).toBe(BigInt(number) * 1000n)
    }),
  )
})
