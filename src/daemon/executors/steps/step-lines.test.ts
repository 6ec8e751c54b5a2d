import { expect, test } from 'vitest'
import { emptyJournal, type Journal } from '../../../schemas/journal.ts'
import type { PackageRecord, StepAttempt } from '../../../schemas/package-record.ts'
import type { StepEnd } from '../../../schemas/step-end.ts'
import { endFields, startFields, stepOfLine } from './ended-steps.ts'

const step: StepAttempt = {
  id: 'x',
  unit: 'x.service',
  mode: 'apply',
  index: 0,
  path: 'run.sh',
  bootId: 'b',
  startedAtMs: 1_000,
}
const running: PackageRecord = {
  name: 'p',
  version: '1.0.0',
  image: 'r/p',
  restarts: 1,
  work: { digest: 'sha256:abc', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' },
  progress: {
    state: 'running',
    stage: 'apply',
    attempt: { number: 2, startedAtMs: 0, steps: [{ ...step, id: 'w' }, step], inputs: '' },
  },
}
const journal: Journal = {
  ...emptyJournal('n'),
  skyhooks: {
    s: {
      uid: 'u',
      rev: 1,
      packages: { 'p|1.0.0': running },
      reboots: {},
      flags: {},
      installedVersions: {},
      canceling: [{ ...step, id: 'y', package: 'q' }],
    },
  },
}
/** The host's wall clock is an hour ahead of steady time. */
const clock = { steadyMs: () => 10_000, wallMs: () => 3_610_000 }

test('a step of the journal is named with its package, its version and its attempt', () => {
  expect(stepOfLine(journal, 'x')).toEqual({
    skyhook: 's',
    package: 'p',
    version: '1.0.0',
    mode: 'apply',
    step: 'run.sh',
    stepId: 'x',
    attempt: 2,
  })
})

test('a canceled step is named without its version, which nobody knows', () => {
  expect(stepOfLine(journal, 'y')).toEqual({ skyhook: 's', package: 'q', mode: 'apply', step: 'run.sh', stepId: 'y' })
})

test('a step that is not in the journal has no name', () => {
  expect(stepOfLine(journal, 'z')).toBeUndefined()
})

test('times are those of the wall clock', () => {
  expect(startFields(step, clock)).toEqual({ startedAt: '1970-01-01T01:00:01.000Z' })
})

const startedAt = '1970-01-01T01:00:01.000Z'
const at4s = { startedAt, endedAt: '1970-01-01T01:00:04.000Z', durationMs: 3_000 }
const now = { startedAt, endedAt: '1970-01-01T01:00:10.000Z', durationMs: 9_000 }

test.each<[string, StepAttempt['result'], StepEnd | undefined, boolean, object]>([
  [
    'that passed has its exit code',
    { result: 'ok', endedAtMs: 4_000 },
    { outcome: 'exited', code: 7 },
    false,
    { ...at4s, result: 'ok', exitCode: 7 },
  ],
  [
    'that failed says why',
    { result: 'failed', endedAtMs: 4_000, message: 'it broke' },
    { outcome: 'exited', code: 3 },
    false,
    { ...at4s, result: 'failed', exitCode: 3, detail: 'it broke' },
  ],
  [
    'that was killed has no exit code',
    { result: 'failed', endedAtMs: 4_000, message: 'killed by KILL' },
    { outcome: 'killed', signal: 'KILL' },
    false,
    { ...at4s, result: 'failed', detail: 'killed by KILL' },
  ],
  [
    'whose end nobody saw is unknown',
    undefined,
    { outcome: 'unknown', detail: 'gone' },
    false,
    { ...now, result: 'unknown', detail: 'gone' },
  ],
  ['that was canceled is neither', undefined, undefined, true, { ...now, result: 'canceled' }],
])('the end of a step %s', (_, result, end, isCanceled, expected) => {
  const ended = { ...step, ...(result && { result }) }
  expect(endFields(ended, end && { state: 'ended', end }, clock, isCanceled)).toEqual(expected)
})
