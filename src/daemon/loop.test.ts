import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { emptyJournal, type Journal } from '../schemas/journal.ts'
import { known, type StageSettings } from '../stages/model/snapshot.ts'
import { startLoop } from './loop.ts'
import { newState, snapshotOf, type State } from './state/state.ts'

const settings: StageSettings = {
  runtimeRequiredTaint: { key: 'k', effect: 'NoSchedule' },
  skipNamespaces: [],
  reapplyOnReboot: false,
}

let stopping = new AbortController()
afterEach(() => {
  stopping.abort()
  stopping = new AbortController()
})

function nodeState(): State {
  const state = newState(emptyJournal(''), 'boot-1')
  state.node = { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } }
  state.skyhooks = known([])
  state.slots = known([])
  return state
}

const defaultPorts = {
  onDecided: () => undefined,
  onActionFailed: () => undefined,
  onJournalFailed: () => undefined,
  writeJournal: async () => undefined,
}

test('a record that cannot be written is tried again, though no plan names it twice', async () => {
  const state = nodeState()
  const uid = 'a-uid'
  const steps = [
    {
      package: 'a',
      id: 'x',
      unit: 'x.service',
      mode: 'apply',
      index: 0,
      path: 'run.sh',
      bootId: 'boot-1',
      startedAtMs: 0,
    },
  ]
  const canceledRecord = { uid, rev: 1, packages: {}, reboots: {}, flags: {}, installedVersions: {}, canceling: steps }
  state.journal = { ...state.journal, nodeUid: 'u', skyhooks: { gone: canceledRecord } }
  state.attempts.set('x', { state: 'ended', end: { outcome: 'exited', code: 0 } })
  let attemptCount = 0
  startLoop({
    ...defaultPorts,
    state,
    settings,
    execute: async ({ do: what }) => {
      if (what === 'forgetStep' && ++attemptCount < 3) throw new Error('ENOSPC')
    },
    signal: stopping.signal,
  })
  await expect.poll(() => attemptCount, { timeout: 8_000 }).toBe(3)
  await sleep(1_500)
  expect(attemptCount).toBe(3)
})

test('a journal that cannot be written holds everything back, says why, and is tried again until it can', async () => {
  const state = nodeState()
  let isFull = true
  const written: Journal[] = []
  const failures: string[] = []
  const loop = startLoop({
    state,
    settings,
    writeJournal: async (journal) => {
      if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
      written.push(journal)
    },
    execute: async () => undefined,
    onDecided: () => undefined,
    onActionFailed: () => undefined,
    onJournalFailed: (error) => failures.push((error as Error).message),
    signal: stopping.signal,
  })
  await sleep(50)
  expect(snapshotOf(state, 0, settings)?.host).toEqual({
    state: 'unusable',
    reason: 'HostUnusable',
    message: 'nothing is begun while the journal cannot be written: ENOSPC: no space left on device, write',
  })
  loop.wake()
  await sleep(50)
  expect(failures).toHaveLength(1) // told once, however often it is tried
  isFull = false
  await expect.poll(() => snapshotOf(state, 0, settings)?.host, { timeout: 5_000 }).toEqual({ state: 'usable' }) // nobody woke it
  expect(written.at(-1)).toMatchObject({ nodeUid: 'u' })
})
