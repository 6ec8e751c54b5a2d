import { expect, test } from 'vitest'
import { durationMs, formatDuration } from './time.ts'

test.each([
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1.5m', 90_000],
  ['250ms', 250],
  ['0', 0],
  ['+5m', 300_000],
  ['2000µs', 2], // the micro sign
  ['2000μs', 2], // the Greek letter
  ['++5m', undefined],
  ['', undefined],
  ['90', undefined],
  ['1x', undefined],
  ['-5s', undefined],
  ['5s!', undefined],
])('the duration %s has %s ms', (text, expected) => expect(durationMs(text)).toBe(expected))

test.each([
  [0, '0s'],
  [250, '0.25s'],
  [90_000, '90s'],
  [300_000, '5m'],
  [3_600_000, '60m'],
])('%s ms are written as %s, and read back', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
  expect(durationMs(text)).toBe(ms)
})
