import { expect, test } from 'vitest'
import { emptyJournal } from '../../../schemas/journal.ts'
import type { PackageRecord, RetryingPackage } from '../../../schemas/package-record.ts'
import { newSkyhookRecord } from '../../../stages/model/plan-builder.ts'
import { pauseEnds, withShortPauses } from './rehearsal-start.ts'

const failure = { reason: 'StepFailed', message: 'failed' } as const
const attempt = { number: 4, startedAtMs: 0, steps: [], inputs: '' }
const work = { digest: '', generation: 1, inputs: '', packageName: 'a', packageVersion: '1.0.0' }
const facts = { version: '1.0.0', image: 'r/a', restarts: 4, work }
const failed = (name: string, retryAtMs: number): RetryingPackage => ({
  ...facts,
  name,
  progress: { state: 'retrying', stage: 'config', attempt, failure, retryAtMs },
})
const failedInterrupt = (name: string, retryAtMs: number): PackageRecord => ({
  ...facts,
  name,
  progress: { state: 'retrying', stage: 'interrupt', failure, retryAtMs },
})

test('pauses end in their order, one right after the other, and what is due stays due', () => {
  const packages: Readonly<Record<string, PackageRecord>> = {
    late: failed('late', 300_000),
    early: failedInterrupt('early', 70_000),
    same: failed('same', 300_000),
    due: failedInterrupt('due', 900),
    done: { ...facts, name: 'done', progress: { state: 'complete', stage: 'config' } },
  }
  const journal = { ...emptyJournal('n'), skyhooks: { s: { ...newSkyhookRecord('u'), packages } } }
  expect(pauseEnds(journal)).toEqual([900, 70_000, 300_000])
  const shortened = withShortPauses(journal, 1_000).skyhooks['s']?.packages ?? {}
  const ends = Object.entries(shortened).flatMap(([name, { progress }]) =>
    progress.state === 'retrying' ? [[name, progress.retryAtMs]] : [],
  )
  expect(ends).toEqual([
    ['late', 1_002],
    ['early', 1_001],
    ['same', 1_002],
    ['due', 1_000],
  ])
  expect(shortened['done']).toEqual(packages['done'])
})
