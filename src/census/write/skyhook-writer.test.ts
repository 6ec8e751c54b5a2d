import { expect, test } from 'vitest'
import { writeAtMs } from './skyhook-writer.ts'

test.each<[string, Parameters<typeof writeAtMs>[0], number]>([
  ['is written immediately the first time', { lastWriteMs: undefined, agents: 5_000, isUrgent: false }, -Infinity],
  ['with progress is written once a second in a small fleet', { lastWriteMs: 7, agents: 3, isUrgent: false }, 1_007],
  ['with progress is written less often in a large fleet', { lastWriteMs: 7, agents: 1_000, isUrgent: false }, 10_007],
  [
    'with progress is written every half minute in any fleet',
    { lastWriteMs: 7, agents: 5_000, isUrgent: false },
    30_007,
  ],
  [
    'with an urgent change is written immediately in a fleet of any size',
    { lastWriteMs: 7, agents: 5_000, isUrgent: true },
    107,
  ],
])('a status %s', (_, pace, atMs) => expect(writeAtMs(pace)).toBe(atMs))
