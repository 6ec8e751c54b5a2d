import { expect, test } from 'vitest'
import { writeAtMs } from './write-throttle.ts'

test.each<[string, Parameters<typeof writeAtMs>[0], number]>([
  ['the first status is written immediately', { lastWriteMs: undefined, agents: 5_000, isUrgent: false }, -Infinity],
  ['progress of a small fleet is written once a second', { lastWriteMs: 7, agents: 3, isUrgent: false }, 1_007],
  ['progress of a large fleet is written less often', { lastWriteMs: 7, agents: 5_000, isUrgent: false }, 10_007],
  [
    'an urgent change is written immediately in a fleet of any size',
    { lastWriteMs: 7, agents: 5_000, isUrgent: true },
    107,
  ],
])('%s', (_, pace, atMs) => expect(writeAtMs(pace)).toBe(atMs))
