import { expect, test } from 'vitest'
import { chaosRuns } from './chaos-runs.ts'

test('the minutes of chaos that passed add up, and their seeds are known', () => {
  const { seeds, minutes } = chaosRuns(['seed 1: 10 min', 'seed 47291: 2 min', 'seed 2: 0.5 min'])
  expect([minutes, [...seeds]]).toEqual([12.5, [1, 47_291, 2]])
  expect(chaosRuns([]).minutes).toBe(0)
})
