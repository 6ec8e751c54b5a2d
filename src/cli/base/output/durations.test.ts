import { expect, test } from 'vitest'
import { durationText, elapsed, formatAge } from './durations.ts'

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000]

test.each([
  [0, '0s', '0s', '0.0s'],
  [1_649, '1s', '2s', '1.6s'],
  [9_960, '9s', '10s', '10.0s'],
  [10_000, '10s', '10s', '10s'],
  [119 * second, '119s', '119s', '119s'],
  [2 * minute, '2m', '2m', '2m'],
  [2 * minute + 29 * second, '2m29s', '2m', '2m29s'],
  [9 * minute + 30 * second, '9m30s', '10m', '9m30s'],
  [12 * minute + 34 * second, '12m', '13m', '12m'],
  [59 * minute + 30 * second, '59m', '1h', '59m'],
  [3 * hour + 12 * minute, '3h12m', '3h12m', '3h12m'],
  [12 * hour + 5 * minute, '12h', '12h5m', '12h'],
  [day, '1d', '1d', '1d'],
  [2 * day + 4 * hour + 59 * minute, '2d4h', '2d4h', '2d4h'],
  [400 * day + 4 * hour, '400d', '400d4h', '400d'],
])('%d ms are %s as an age, %s as a duration, and have passed as %s', (ms, age, duration, passed) => {
  expect([formatAge(ms), durationText(ms), elapsed(ms)]).toEqual([age, duration, passed])
})

test('a span that starts in the future, by the clock of another machine, is zero', () => {
  expect([formatAge(-hour), durationText(-hour), elapsed(-hour)]).toEqual(['0s', '0s', '0.0s'])
})

test.each([Number.NaN, Infinity])('a span of %d ms is unknown', (ms) => {
  expect([formatAge(ms), durationText(ms), elapsed(ms)]).toEqual(['unknown', 'unknown', 'unknown'])
})
