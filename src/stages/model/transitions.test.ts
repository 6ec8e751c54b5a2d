import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { PackageProgress, PackageRecord, RetryingPackage, RunningPackage } from '../../schemas/package-record.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import * as functions from './transitions.ts'
import { transitions, type Transition } from './transitions.ts'

const page = readFileSync(new URL('../../../docs/design/package-states.md', import.meta.url), 'utf8')

const attempt = { number: 1, startedAtMs: 0, steps: [], inputs: '' }
const failure = { reason: 'StepFailed', message: 'no' } as const
const failed = { failure, nowMs: 1, retryAtMs: 2 }
const work = { digest: 'sha256:1', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' }
const spec: PackageSpec = { version: '1.0.0', image: 'r/p' }
const inputs = { config: { x: '1' }, env: [] }
const config = { started: inputs, finished: inputs, changedKeys: ['x'] }
const record = (progress: PackageProgress): PackageRecord => ({
  name: 'a',
  version: '1.0.0',
  image: 'r/p',
  restarts: 2,
  work,
  config,
  pendingInterrupt: { interrupt: { type: 'reboot' } },
  progress,
})

/** One record in each state. */
const records: Readonly<Record<PackageProgress['state'], PackageRecord>> = {
  due: record({ state: 'due', stage: 'config' }),
  running: record({ state: 'running', stage: 'config', attempt }),
  retrying: record({ state: 'retrying', stage: 'config', attempt, retryAtMs: 1, failure }),
  complete: record({ state: 'complete', stage: 'config' }),
  skipped: record({ state: 'skipped', stage: 'uninstall' }),
  retained: record({ state: 'retained', stage: 'config', shownAs: 'complete' }),
}

const facts = { attempt, config, pendingInterrupt: undefined, uninstallInputs: undefined }
const start = { ...facts, stage: 'config', work, spec } as const

/** Each transition with all that it may be asked for, on a record that may be in a state that its type forbids. */
const calls: Readonly<Record<keyof typeof transitions, readonly ((entry: PackageRecord) => PackageRecord)[]>> = {
  newPackage: [() => functions.newPackage('a', spec, 'apply')],
  adoptPackage: (['due', 'complete'] as const).map(
    (state) => () =>
      functions.adoptPackage({ name: 'a', version: '1.0.0', image: 'r/p' }, { progress: { state, stage: 'config' } }),
  ),
  beginStage: [(entry) => functions.beginStage(entry, start)],
  recordSteps: [(entry) => functions.recordSteps(entry as RunningPackage, attempt)],
  completeStage: [(entry) => functions.completeStage(entry as RunningPackage, 1)],
  failStage: [(entry) => functions.failStage(entry as RunningPackage, failed)],
  leaveBehind: [(entry) => functions.leaveBehind(entry as RetryingPackage)],
  retryStage: [(entry) => functions.retryStage(entry as RetryingPackage, facts)],
  dropAttempt: [functions.dropAttempt],
  startInterrupt: [functions.startInterrupt],
  completeInterrupt: [(entry) => functions.completeInterrupt(entry, undefined)],
  failInterrupt: [(entry) => functions.failInterrupt(entry, failed)],
  returnToConfig: [(entry) => functions.returnToConfig(entry, entry)],
  finishPackage: [functions.finishPackage],
  retainPackage: [functions.retainPackage],
  startOver: [functions.startOver],
  reapply: [functions.reapply],
  editStage: [true, false].map((isComplete) => (entry) => functions.editStage(entry, 'apply', isComplete)),
}

const names = Object.keys(transitions) as (keyof typeof transitions)[]
const states = Object.keys(records) as PackageProgress['state'][]

/** What the function does, as lines of the diagram: `from --> to: name`. */
const arrowsOf = (name: keyof typeof transitions): string[] => {
  const { from }: Transition = transitions[name]
  return from.flatMap((state) => {
    const entry = state === 'absent' ? records.due : records[state]
    const ends = calls[name].map((call) => call(entry).progress.state)
    return [...new Set(ends)].map((end) => `${state === 'absent' ? '[*]' : state} --> ${end}: ${name}`)
  })
}

const drawnArrows = [...page.matchAll(/^ {2}(\S+ --> \w+): (.+)$/gm)].flatMap(([, arrow = '', labels = '']) =>
  labels.split(', ').map((name) => `${arrow}: ${name}`),
)

describe('transitions of a package', () => {
  test.each(names)('%s ends in the states of its table', (name) => {
    const ends = arrowsOf(name).map((arrow) => /--> (\w+)/.exec(arrow)?.[1])
    expect(new Set(ends)).toEqual(new Set(transitions[name].to))
  })

  test.each(names)('%s throws in all states that its table does not name', (name) => {
    const { from }: Transition = transitions[name]
    const others = from.includes('absent') ? [] : states.filter((state) => !from.includes(state))
    for (const state of others)
      for (const call of calls[name])
        expect(() => call(records[state]), state).toThrow(`${name} of package a 1.0.0: not from ${state}`)
  })

  test.each(['beginStage', 'retainPackage'] as const)('%s throws while a step is open', (name) => {
    const step = { id: '1', unit: 'u', mode: 'config', index: 0, path: 'run.sh', bootId: 'b', startedAtMs: 0 } as const
    const entry = record({ state: 'running', stage: 'config', attempt: { ...attempt, steps: [step] } })
    for (const call of calls[name]) expect(() => call(entry)).toThrow('a step of config is still open')
  })

  test('the diagrams of the design page have exactly the arrows of the code', () => {
    expect(drawnArrows.toSorted()).toEqual(names.flatMap(arrowsOf).toSorted())
    expect(new Set(drawnArrows).size).toBe(drawnArrows.length)
  })

  test('the table of the design page has the transitions of the code', () => {
    const rows = [
      ...page.slice(page.indexOf('## Transitions')).matchAll(/^\| `(\w+)` \| ([\w, ]+) \| ([\w, ]+) \| .+ \|$/gm),
    ]
    const table = rows.map(([, name = '', from = '', to = '']) => [
      name,
      { from: from.split(', '), to: to.split(', ') },
    ])
    expect(Object.fromEntries(table)).toEqual(transitions)
  })

  test('an uninstall that is complete leaves only what the package is', () => {
    const entry = record({ state: 'running', stage: 'uninstall', attempt })
    expect(functions.completeStage(entry as RunningPackage, 1)).toEqual({
      name: 'a',
      version: '1.0.0',
      image: 'r/p',
      restarts: 0,
      progress: { state: 'complete', stage: 'uninstall' },
    })
  })

  test('a failure counts from the first failed attempt until the stage starts again', () => {
    const once = functions.failStage({ ...records.running, restarts: 0 } as RunningPackage, failed)
    const retried = functions.retryStage(once as RetryingPackage, facts)
    const twice = functions.failStage(retried, { ...failed, nowMs: 9_000 })
    expect([twice.restarts, twice.failingSinceMs]).toEqual([2, 1])
    const { restarts, failingSinceMs } = functions.beginStage(twice, start)
    expect([restarts, failingSinceMs]).toEqual([0, undefined])
  })
})
