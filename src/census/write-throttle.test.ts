import { expect, test } from 'vitest'
import { writeAtMs } from './write-throttle.ts'

test.each<[string, Parameters<typeof writeAtMs>[0], number]>([
  ['the first is written at once', { lastWriteMs: undefined, agents: 5_000, isUrgent: false }, -Infinity],
  ['progress of a small fleet: once a second', { lastWriteMs: 7, agents: 3, isUrgent: false }, 1_007],
  ['progress of a large fleet: slower', { lastWriteMs: 7, agents: 5_000, isUrgent: false }, 10_007],
  ['what somebody waits for: at once, however many', { lastWriteMs: 7, agents: 5_000, isUrgent: true }, 107],
])('%s', (_, pace, atMs) => expect(writeAtMs(pace)).toBe(atMs))
