import { expect, test } from 'vitest'
import { parseStepLine, type StepOfLine } from './step-log.ts'

const of: StepOfLine = {
  skyhook: 's',
  package: 'p',
  version: '1.0.0',
  mode: 'apply',
  step: 'run.sh',
  stepId: 'x',
  attempt: 2,
}
const time = '1970-01-01T00:00:01.000Z'
const line = { level: 30, time, ...of }
const ended = { startedAt: time, endedAt: '1970-01-01T00:00:03.500Z', durationMs: 2_500, result: 'failed' }

test.each<[string, object, object | undefined]>([
  ['a line of output', { stream: 'stderr', message: 'hello' }, { what: 'output', stream: 'stderr', text: 'hello' }],
  [
    'a line of output that looks like a message',
    { stream: 'stdout', message: 'step ended' },
    { what: 'output', stream: 'stdout', text: 'step ended' },
  ],
  [
    'skipped output',
    { stream: 'stdout', skippedBytes: 5, log: '/l', message: 'output skipped' },
    { what: 'gap', stream: 'stdout', log: '/l', skippedBytes: 5 },
  ],
  [
    'truncated output',
    { stream: 'stdout', log: '/l', message: 'output truncated, showing the tail' },
    { what: 'gap', stream: 'stdout', log: '/l' },
  ],
  ['a start', { startedAt: time, message: 'step started' }, { what: 'started', startedAt: time, isRunning: false }],
  [
    'a step that an agent found running',
    { startedAt: time, message: 'step is running' },
    { what: 'started', startedAt: time, isRunning: true },
  ],
  [
    'an end',
    { ...ended, exitCode: 3, detail: 'it broke', message: 'step ended' },
    { what: 'ended', end: { ...ended, exitCode: 3, detail: 'it broke' }, isRepeated: false },
  ],
  [
    'an end that is said again',
    { ...ended, result: 'ok', repeated: true, message: 'step ended' },
    { what: 'ended', end: { ...ended, result: 'ok' }, isRepeated: true },
  ],
  ['a start without its time', { message: 'step started' }, undefined],
  ['an end with an unknown result', { ...ended, result: 'odd', message: 'step ended' }, undefined],
  ['another message about a step', { message: 'something else' }, undefined],
  ['a line without a message', { stream: 'stdout' }, undefined],
  ['a line about no step', { step: undefined, stream: 'stdout', message: 'x' }, undefined],
])('%s of an agent log is read back', (_, fields, expected) => {
  expect(parseStepLine({ ...line, ...fields })).toEqual(expected && { of, atMs: 1_000, ...expected })
})

test.each([[undefined], ['text'], [null], [[]]])('%j is not a line about a step', (value) => {
  expect(parseStepLine(value)).toBeUndefined()
})
