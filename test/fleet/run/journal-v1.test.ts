import { expect, test } from 'vitest'
import { upgradeJournal } from '../../../src/schemas/journal-v1.ts'
import type { Journal } from '../../../src/schemas/journal.ts'
import { downgradeJournal } from './journal-v1.ts'

const step = { id: '1', unit: 'u.service', mode: 'config', index: 0, path: 'run.sh', bootId: 'b1', startedAtMs: 10 }
const attempt = { number: 2, startedAtMs: 9, steps: [step], inputs: 'bb' } as const
const work = { digest: 'sha256:1', generation: 3, inputs: 'aa', packageName: 'p', packageVersion: '1.0.0' }
const facts = { name: 'p', version: '1.0.0', image: 'r/p', restarts: 0 }
const inputs = { config: { x: '1' }, env: [] }
const failure = { reason: 'CheckFailed', message: 'no' } as const

const journal = {
  v: 2,
  nodeUid: 'node',
  bootId: 'b1',
  lastSeenUnschedulable: true,
  cordonRetriesAtMs: [5],
  runtimeRequired: true,
  skyhooks: {
    s: {
      uid: 'uid',
      rev: 7,
      reboots: { a: 1 },
      priorReboots: { a: 1 },
      flags: {},
      canceling: [{ ...step, package: 'gone' }],
      drain: { state: 'waiting', yieldCount: 2, sinceMs: 3 },
      installedVersions: { p: '1.0.0' },
      lifecycle: { startedAtMs: 1, generation: 3 },
      packages: {
        running: { ...facts, work, progress: { state: 'running', stage: 'config', attempt } },
        retrying: { ...facts, work, progress: { state: 'retrying', stage: 'apply', attempt, retryAtMs: 8, failure } },
        refused: { ...facts, work, progress: { state: 'retrying', stage: 'interrupt', retryAtMs: 8, failure } },
        due: { ...facts, work: undefined, progress: { state: 'due', stage: 'apply' } },
        complete: {
          ...facts,
          work,
          progress: { state: 'complete', stage: 'config' },
          config: { started: inputs, finished: inputs, changedKeys: ['x'], interrupts: {} },
          pendingInterrupt: { interrupt: { type: 'reboot', when: 'required' }, requiredInBoot: 'b0' },
          lastInterrupt: { type: 'reboot' },
          lastRequestedRunAtMs: 4,
        },
        retained: { ...facts, work, progress: { state: 'retained', stage: 'config', shownAs: 'complete' } },
        skipped: { ...facts, work, progress: { state: 'skipped', stage: 'uninstall' } },
      },
    },
  },
} as unknown as Journal

test('an agent reads from a journal of the version before what it had written itself', () => {
  const older = JSON.parse(JSON.stringify(downgradeJournal(journal))) as { v: number }
  expect([older.v, upgradeJournal(older)]).toEqual([1, journal])
})

test('a journal of the version before knows no soak', () => {
  const { s } = journal.skyhooks
  const soaking = { ...journal, skyhooks: { s: { ...s, soak: { daemonSets: [] } } } } as unknown as Journal
  expect(JSON.stringify(downgradeJournal(soaking))).not.toContain('soak')
})
