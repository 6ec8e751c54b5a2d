import { describe, expect, test } from 'vitest'
import type { StageAttempt } from '../../schemas/package-record.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import type { AttemptObservation } from '../model/snapshot.ts'
import { plainStep as step } from '../../../test/kit/node-simulator/package-content.ts'
import { advanceAttempt, hasRunIn, unitName, type AdvanceResult, type AttemptContext } from './attempt.ts'

const config: PackageConfig = {
  packageName: 'p',
  packageVersion: '1.0.0',
  expectedConfigFiles: [],
  modes: {
    apply: [step('one.sh', { idempotence: 'agent' }), step('two.sh')],
    'apply-check': [step('a.sh'), step('b.sh')],
  },
}

const context: AttemptContext = {
  nowMs: 5,
  bootId: 'boot-1',
  config,
  contentHashes: new Map(),
  stage: 'apply',
  alwaysRun: false,
  packageName: 'a',
  version: '1.0.0',
  flags: {},
  attempts: new Map(),
  idSeed: 'seed',
  mayStart: true,
}

const fresh: StageAttempt = { number: 1, startedAtMs: 0, steps: [], inputs: '' }
const exited = (code: number): AttemptObservation => ({ state: 'ended', end: { outcome: 'exited', code } })

/** Ends the open step as observed, in the same boot unless `change` says otherwise. */
function advance(
  before: AdvanceResult,
  observed: AttemptObservation,
  change: Partial<AttemptContext> = {},
): AdvanceResult {
  const id = before.progress.attempt.steps.at(-1)?.id ?? 'none'
  return advanceAttempt(before.progress.attempt, { ...context, ...change, attempts: new Map([[id, observed]]) })
}

const pathsOf = ({ progress }: AdvanceResult): string[] => progress.attempt.steps.map(({ path }) => path)

describe('attempt', () => {
  test('an attempt runs its steps one after another, then its checks, and completes', () => {
    let result = advanceAttempt(fresh, context)
    for (let count = 0; count < 4; count++) result = advance(result, exited(0))
    expect([pathsOf(result), result.progress.state]).toEqual([['one.sh', 'two.sh', 'a.sh', 'b.sh'], 'complete'])
  })

  test('a step that fails ends the attempt', () => {
    const result = advance(advanceAttempt(fresh, context), exited(1))
    expect(result.progress).toMatchObject({
      state: 'failed',
      reason: 'StepFailed',
      message: expect.any(String) as string,
    })
    expect(pathsOf(result)).toEqual(['one.sh'])
  })

  test('all checks run before the attempt fails with all their messages', () => {
    let result = advanceAttempt(fresh, context)
    for (const code of [0, 0, 1, 2]) result = advance(result, exited(code))
    expect(result.progress).toMatchObject({
      state: 'failed',
      reason: 'CheckFailed',
      message: 'apply-check a.sh exited 1, expected 0; apply-check b.sh exited 2, expected 0',
    })
  })

  test('a guarded step sets its flag and is skipped with it', () => {
    const [flag = ''] = advance(advanceAttempt(fresh, context), exited(0)).setFlags
    expect(flag).toMatch(/^a\/apply\//)
    const guarded = advanceAttempt(fresh, { ...context, flags: { [flag]: 1 } })
    expect(guarded.progress.attempt.steps.map(({ result }) => result?.result)).toEqual(['skipped', undefined])
    const always = advanceAttempt(fresh, { ...context, flags: { [flag]: 1 }, alwaysRun: true })
    expect(always.progress.attempt.steps).toHaveLength(1)
  })

  test('an attempt has run once one of its steps has, other than one that is skipped or could not start', () => {
    const skipped = advanceAttempt(fresh, {
      ...context,
      flags: { [advance(advanceAttempt(fresh, context), exited(0)).setFlags[0] ?? '']: 1 },
    })
    const hasRun = ({ progress }: AdvanceResult): boolean => hasRunIn(progress.attempt, 'boot-1')
    expect([hasRun(advanceAttempt(fresh, context)), hasRun(skipped)]).toEqual([false, false])
    const onlyChecks = { config: { ...config, modes: { 'apply-check': [step('a.sh'), step('b.sh'), step('c.sh')] } } }
    const unstarted: AttemptObservation = { state: 'ended', end: { outcome: 'failed-to-start', detail: 'no file' } }
    const second = advance(advanceAttempt(fresh, { ...context, ...onlyChecks }), unstarted, onlyChecks)
    const third = advance(second, exited(1), onlyChecks)
    expect([hasRun(second), hasRun(third), hasRunIn(third.progress.attempt, 'boot-2')]).toEqual([false, true, false])
  })

  test('a step lost with its boot is unknown and repeated under another id', () => {
    const first = advanceAttempt(fresh, context)
    const again = advance(first, { state: 'absent' }, { bootId: 'boot-2' })
    expect(again.unknownSteps).toHaveLength(1)
    expect(pathsOf(again)).toEqual(['one.sh'])
    expect(again.progress.attempt.steps[0]?.id).not.toBe(first.progress.attempt.steps[0]?.id)
  })

  test('a step has another id in each boot, though its attempt started at the same time of both', () => {
    const ids = ['boot-1', 'boot-2', 'boot-1'].map((bootId) => {
      const { progress } = advanceAttempt(fresh, { ...context, bootId })
      return progress.attempt.steps[0]?.id
    })
    expect(ids[1]).not.toBe(ids[0])
    expect(ids[2]).toBe(ids[0])
  })

  test('no step starts while nothing may start', () => {
    const result = advanceAttempt(fresh, { ...context, mayStart: false })
    expect(result.progress).toEqual({ state: 'in-progress', attempt: fresh })
  })

  test('a unit name stays below the limit of systemd and keeps the id', () => {
    const name = unitName('a', 'apply', 'x/'.repeat(200), '0123456789abcdef')
    expect([name.length, name.endsWith('-0123456789abcdef.service')]).toEqual([250, true])
  })
})
