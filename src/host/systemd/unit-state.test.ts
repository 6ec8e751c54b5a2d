import { describe, expect, test } from 'vitest'
import type { StepEnd } from '../../schemas/step-end.ts'
import { endOfUnit, stepEndOf, type UnitEnd } from './unit-state.ts'

describe('how a step ended', () => {
  test.each<[UnitEnd, StepEnd]>([
    [
      { result: 'success', code: 'exited', status: '0' },
      { outcome: 'exited', code: 0 },
    ],
    [
      { result: 'exit-code', code: 'exited', status: '3' },
      { outcome: 'exited', code: 3 },
    ],
    [
      { result: 'signal', code: 'killed', status: 'KILL' },
      { outcome: 'killed', signal: 'SIGKILL' },
    ],
    [
      { result: 'core-dump', code: 'dumped', status: 'SEGV' },
      { outcome: 'killed', signal: 'SIGSEGV' },
    ],
    [
      { result: 'oom-kill', code: 'exited', status: '137' },
      { outcome: 'killed', signal: 'SIGKILL' },
    ],
    [{ result: 'timeout', code: 'killed', status: 'TERM' }, { outcome: 'timeout' }],
    [{ result: 'timeout', code: 'exited', status: '0' }, { outcome: 'timeout' }], // answered TERM with a clean exit
    [
      { result: 'success', code: '', status: '' },
      { outcome: 'unknown', detail: 'the unit ended without a main process' },
    ],
  ])('the end of a unit %j shows how the step ended', (end, outcome) => expect(stepEndOf(end)).toEqual(outcome))

  test.each(['200', '203', '209', '243'])('exit code %s means that the step did not start', (status) => {
    expect(stepEndOf({ result: 'exit-code', code: 'exited', status })).toMatchObject({
      outcome: 'failed-to-start',
      detail: expect.stringMatching(`^${status}/`) as string,
    })
  })

  test.each(['resources', 'exec-condition', 'start-limit-hit'])(
    'the result %s means that the step did not start',
    (result) => {
      expect(stepEndOf({ result, code: '', status: '' })).toMatchObject({
        outcome: 'failed-to-start',
        detail: expect.stringMatching(`^${result}`) as string,
      })
    },
  )

  test.each([
    [
      { result: 'success', execMainCode: 1, execMainStatus: 0 },
      { result: 'success', code: 'exited', status: '0' },
    ],
    [
      { result: 'signal', execMainCode: 2, execMainStatus: 15 },
      { result: 'signal', code: 'killed', status: 'TERM' },
    ],
    [
      { result: 'core-dump', execMainCode: 3, execMainStatus: 11 },
      { result: 'core-dump', code: 'dumped', status: 'SEGV' },
    ],
    [
      { result: 'resources', execMainCode: 0, execMainStatus: 0 },
      { result: 'resources', code: '', status: '0' },
    ],
  ])('the properties %j of a unit become its end', (unit, end) => expect(endOfUnit(unit)).toEqual(end))
})
