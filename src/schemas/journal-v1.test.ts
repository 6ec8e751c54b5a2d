import { expect, test } from 'vitest'
import { upgradeJournal } from './journal-v1.ts'
import { emptyJournal, openSteps } from './journal.ts'

const work = { digest: 'sha256:1', generation: 3, inputs: 'aa', packageName: 'p', packageVersion: '1.0.0' }
const step = { id: '1', unit: 'u.service', mode: 'config', index: 0, path: 'run.sh', bootId: 'b1', startedAtMs: 10 }
const attempt = { number: 2, startedAtMs: 9, steps: [step], inputs: 'bb' }
const failedAttempt = { ...attempt, steps: [{ ...step, result: { result: 'failed', endedAtMs: 11, message: 'no' } }] }
const inputs = (value: string): object => ({ config: { x: value }, env: [] })
const base = { version: '1.0.0', image: 'r/p:1.0.0', restarts: 0, work }
const failure = { reason: 'CheckFailed', message: 'no' }
const service = { type: 'service', services: ['cron'] }

/** As an agent of version 0.1 wrote it, one package in each state. */
const document = {
  v: 1,
  cordonSeen: true,
  cordonPending: true,
  cordonedAgainMs: [5],
  nodeUid: 'node',
  bootId: 'b1',
  skyhooks: {
    s: {
      uid: 'uid',
      rev: 7,
      applied: 'cc',
      lifecycle: { startedAtMs: 1, generation: 3 },
      reboots: { 'cc/due': 1 },
      inheritedReboots: { 'cc/due': 1 },
      flags: { 'running/apply/1': 4 },
      stopping: [{ ...step, id: '2', package: 'gone' }],
      interrupt: { id: 'run', interrupt: service, owners: ['interrupting|1.0.0'], bootId: 'b1', startedAtMs: 8 },
      drain: { yields: 2, untilMs: 90, reason: { reason: 'DrainBlocked', message: 'pod' } },
      published: { rev: 7, state: '{}', status: 'in_progress', atMs: 3 },
      installed: { complete: '1.0.0' },
      packages: {
        'running|1.0.0': {
          ...base,
          name: 'running',
          stage: 'config',
          state: 'in_progress',
          attempt,
          started: inputs('2'),
          finished: inputs('1'),
          changedKeys: ['x'],
          configInterrupts: { x: service },
          owes: service,
          passedAtMs: 6,
          wantedAtMs: 7,
        },
        'erroring|1.0.0': {
          ...base,
          name: 'erroring',
          stage: 'apply',
          state: 'erroring',
          restarts: 2,
          attempt: failedAttempt,
          retryAtMs: 80,
          failure,
        },
        'complete|1.0.0': {
          ...base,
          name: 'complete',
          stage: 'post-interrupt',
          state: 'complete',
          installedBy: 'apply',
          started: inputs('1'),
          finished: inputs('1'),
          interrupted: service,
          uninstall: { enabled: true },
        },
        'asked|1.0.0': {
          ...base,
          name: 'asked',
          stage: 'config',
          state: 'complete',
          started: inputs('1'),
          owes: { ...service, when: 'required' },
          interruptRequired: { required: true, bootId: 'b0' },
        },
        'interrupting|1.0.0': {
          ...base,
          name: 'interrupting',
          stage: 'interrupt',
          state: 'in_progress',
          owes: service,
        },
        'refused|1.0.0': {
          ...base,
          name: 'refused',
          stage: 'interrupt',
          state: 'erroring',
          owes: { type: 'reboot' },
          restarts: 1,
          retryAtMs: 70,
          failure: { reason: 'RebootRefused', message: 'inhibited' },
        },
        'kept|0.9.0': {
          ...base,
          name: 'kept',
          version: '0.9.0',
          stage: 'config',
          state: 'erroring',
          kept: true,
          attempt: failedAttempt,
          retryAtMs: 80,
          failure,
        },
        'skipped|1.0.0': { ...base, name: 'skipped', stage: 'uninstall', state: 'skipped' },
        'due|1.0.0': { ...base, name: 'due', stage: 'apply', state: 'in_progress', work: undefined },
      },
    },
  },
}

test('a journal of version 1 is read as one of version 2', () => {
  const { skyhooks, ...journal } = upgradeJournal(JSON.parse(JSON.stringify(document)) as { v: number })
  expect(journal).toEqual({
    v: 2,
    nodeUid: 'node',
    bootId: 'b1',
    lastSeenUnschedulable: true,
    cordonPending: true,
    cordonRetriesAtMs: [5],
  })
  const { packages, ...record } = skyhooks['s'] ?? expect.unreachable()
  expect(record).toEqual({
    uid: 'uid',
    rev: 7,
    applied: 'cc',
    lifecycle: document.skyhooks.s.lifecycle,
    reboots: { 'cc/due': 1 },
    priorReboots: { 'cc/due': 1 },
    flags: { 'running/apply/1': 4 },
    canceling: [{ ...step, id: '2', package: 'gone' }],
    interrupt: document.skyhooks.s.interrupt,
    drain: { state: 'paused', yieldCount: 2, untilMs: 90, reason: { reason: 'DrainBlocked', message: 'pod' } },
    published: document.skyhooks.s.published,
    installedVersions: { complete: '1.0.0' },
  })
  expect(packages).toEqual({
    'running|1.0.0': {
      ...base,
      name: 'running',
      progress: { state: 'running', stage: 'config', attempt },
      config: { started: inputs('2'), finished: inputs('1'), changedKeys: ['x'], interrupts: { x: service } },
      pendingInterrupt: { interrupt: service },
      passedAtMs: 6,
      lastRequestedRunAtMs: 7,
    },
    'erroring|1.0.0': {
      ...base,
      name: 'erroring',
      restarts: 2,
      progress: { state: 'retrying', stage: 'apply', attempt: failedAttempt, retryAtMs: 80, failure },
    },
    'complete|1.0.0': {
      ...base,
      name: 'complete',
      progress: { state: 'complete', stage: 'post-interrupt' },
      installedBy: 'apply',
      config: { started: inputs('1'), finished: inputs('1'), changedKeys: [] },
      lastInterrupt: service,
      uninstall: { enabled: true },
    },
    'asked|1.0.0': {
      ...base,
      name: 'asked',
      progress: { state: 'complete', stage: 'config' },
      config: { started: inputs('1'), changedKeys: [] },
      pendingInterrupt: { interrupt: { ...service, when: 'required' }, requiredInBoot: 'b0' },
    },
    'interrupting|1.0.0': {
      ...base,
      name: 'interrupting',
      progress: { state: 'due', stage: 'interrupt' },
      pendingInterrupt: { interrupt: service },
    },
    'refused|1.0.0': {
      ...base,
      name: 'refused',
      restarts: 1,
      pendingInterrupt: { interrupt: { type: 'reboot' } },
      progress: {
        state: 'retrying',
        stage: 'interrupt',
        retryAtMs: 70,
        failure: { reason: 'RebootRefused', message: 'inhibited' },
      },
    },
    'kept|0.9.0': {
      ...base,
      name: 'kept',
      version: '0.9.0',
      progress: { state: 'retained', stage: 'config', shownAs: 'erroring' },
    },
    'skipped|1.0.0': { ...base, name: 'skipped', progress: { state: 'skipped', stage: 'uninstall' } },
    'due|1.0.0': { ...base, name: 'due', work: undefined, progress: { state: 'due', stage: 'apply' } },
  })
  expect(openSteps({ ...journal, skyhooks }).map(({ id }) => id)).toEqual(['2', '1'])
})

test('an empty journal of version 1 is read as an empty one', () =>
  expect(upgradeJournal({ v: 1, nodeUid: 'node', skyhooks: {} } as { v: number })).toEqual(emptyJournal('node')))
