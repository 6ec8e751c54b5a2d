import { expect, test } from 'vitest'
import { plainStep } from '../../../test/kit/node-simulator/package-content.ts'
import { builderOf, preparedPackage } from '../../../test/kit/objects/plan-builder.ts'
import type { RunningPackage, StepResult } from '../../schemas/package-record.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { advanceStage } from './advance-stage.ts'

const spec: PackageSpec = { version: '1.0.0', image: 'r/p' }
const permission = { mayStart: true, isDrained: false }
const inputs = { config: { x: '1' }, env: [] }

/** A package in the middle of a stage whose only step ended like this. */
const running = (stage: Stage, result: StepResult): RunningPackage => ({
  name: 'a',
  version: '1.0.0',
  image: 'r/p',
  restarts: 0,
  work: { digest: 'sha256:1', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' },
  config: { started: inputs, changedKeys: [] },
  progress: {
    state: 'running',
    stage,
    attempt: {
      number: 1,
      startedAtMs: 0,
      inputs: '',
      steps: [
        { id: '1', unit: 'u', mode: 'apply', index: 0, path: 'run.sh', bootId: 'boot-1', startedAtMs: 0, result },
      ],
    },
  },
})

const ok = { result: 'ok', endedAtMs: 1 } as const

test('a stage whose steps passed completes and records the version that the host has now', () => {
  const entry = running('apply', ok)
  const builder = builderOf({ packages: { a: spec } }, [entry])
  expect(advanceStage(builder, entry, spec, preparedPackage, permission)).toBe('again')
  expect(builder.record.packages['a|1.0.0']?.progress).toEqual({ state: 'complete', stage: 'apply' })
  expect(builder.record.installedVersions).toEqual({ a: '1.0.0' })
  expect(builder.actions.map((action) => action.do)).toEqual(['recordHistory'])
  expect(builder.events.map(({ type }) => type)).toEqual(['stageCompleted'])
})

test('an uninstall completes only once its files are removed', () => {
  const entry = running('uninstall', ok)
  const builder = builderOf({}, [entry])
  expect(advanceStage(builder, entry, undefined, preparedPackage, permission)).toEqual({ state: 'running' })
  const [action] = builder.actions
  const requestId = action?.do === 'cleanUp' ? action.requestId : 'none'
  const cleanUps = new Map([[requestId, { state: 'done' } as const]])
  const cleaned = builderOf({}, [entry], { cleanUps })
  expect(advanceStage(cleaned, entry, undefined, preparedPackage, permission)).toBe('again')
  expect(cleaned.record.packages['a|1.0.0']?.progress).toEqual({ state: 'complete', stage: 'uninstall' })
})

test('a clean-up waits until the ends of all steps of the uninstall are recorded', () => {
  const entry = running('uninstall', ok)
  const attempts = new Map([['1', { state: 'ended', end: { outcome: 'exited', code: 0 } } as const]])
  const builder = builderOf({}, [entry], { attempts })
  expect(advanceStage(builder, entry, undefined, preparedPackage, permission)).toEqual({ state: 'running' })
  expect(builder.actions).toEqual([])
})

test('a clean-up that a later agent repeats records the same moment, whatever its clocks show', () => {
  const entry = running('uninstall', ok)
  const passedAtWallMs = (from: RunningPackage, snapshot: object): unknown => {
    const builder = builderOf({}, [from], snapshot)
    advanceStage(builder, from, undefined, preparedPackage, permission)
    const kept = builder.record.packages['a|1.0.0'] as RunningPackage
    return { kept, recorded: builder.actions.map((action) => action.do === 'cleanUp' && action.passedAtWallMs) }
  }
  const first = passedAtWallMs(entry, { nowMs: 1_000, wallOffsetMs: 500 }) as { kept: RunningPackage }
  expect(first).toMatchObject({ recorded: [1_500] })
  expect(passedAtWallMs(first.kept, { nowMs: 90, wallOffsetMs: 7 })).toMatchObject({ recorded: [1_500] })
})

test('a config asks the package before it completes if its interrupt is conditional', () => {
  const conditional: PackageSpec = { ...spec, interrupt: { type: 'reboot', when: 'required' } }
  const entry = running('config', ok)
  const builder = builderOf({ packages: { a: conditional } }, [entry])
  expect(advanceStage(builder, entry, conditional, preparedPackage, permission)).toEqual({ state: 'running' })
  expect(builder.actions.map((action) => action.do)).toEqual(['readStatus'])
})

test.each<[string, StepResult, boolean]>([
  ['was skipped', { result: 'skipped', endedAtMs: 1 }, true],
  ['ran', ok, false],
])('the files of a package are put right before a step whose predecessor %s', (_, result, needsCopyDir) => {
  const entry = running('apply', result)
  const builder = builderOf({ packages: { a: spec } }, [entry])
  const step = plainStep('run.sh')
  const prepared = { ...preparedPackage, config: { ...preparedPackage.config, modes: { apply: [step, step] } } }
  advanceStage(builder, entry, spec, prepared, permission)
  expect(builder.actions).toMatchObject([{ do: 'startStep', needsCopyDir }])
})
