import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { emptyJournal, type SkyhookRecord, type StoredJournal } from '../../schemas/journal.ts'
import type { PackageRecord } from '../../schemas/package-record.ts'
import { carryTimes } from './carry-times.ts'

const hourMs = 3_600_000
/** The host has been up for a minute, and its wall clock was right when it booted. */
const nowMs = 60_000
const wallOffsetMs = 1_700_000_000_000
const base = { nowMs, wallOffsetMs, bootId: 'this' }
const reason = { reason: 'DrainBlocked', message: 'm' } as const
const work = { digest: 'd', generation: 1, inputs: 'i', packageName: 'p', packageVersion: '1' }
/** Names that people choose. */
const config = { sinceMs: '5', steps: '6' }
const facts = { name: 'p', version: '1', image: 'i', restarts: 1, work, passedAtWallMs: 7 }
const attempt = { number: 1, inputs: 'x' }
const failure = { reason: 'StepFailed', message: 'm' } as const
const staticPod = { namespace: 'n', name: 's', bootId: 'b', containerIds: [] }

/** Written in the boot before, and not stored yet: every kind of moment is this one, of this boot's steady time. */
function journalAt(atMs: number) {
  const step = { id: 's', unit: 'u', mode: 'apply', index: 0, path: 'p', bootId: 'b', startedAtMs: atMs } as const
  const retrying: PackageRecord = {
    ...facts,
    config: { started: { config, env: [] }, changedKeys: ['atMs'] },
    lastRequestedRunAtMs: atMs,
    progress: { state: 'retrying', stage: 'interrupt', retryAtMs: atMs, failure },
  }
  const steps = [{ ...step, result: { result: 'ok', endedAtMs: atMs } as const }]
  const running: PackageRecord = {
    ...facts,
    progress: { state: 'running', stage: 'apply', attempt: { ...attempt, startedAtMs: atMs, steps } },
  }
  const record: SkyhookRecord = {
    uid: 'u',
    rev: 1,
    reboots: {},
    flags: {},
    canceling: [{ ...step, package: 'p' }],
    interrupt: { id: 'i', interrupt: { type: 'reboot' }, owners: [], bootId: 'b', startedAtMs: atMs },
    installedVersions: { attempt: '1', atMs: '2' },
    lifecycle: { startedAtMs: atMs, generation: 1, interruptedAtMs: atMs },
    published: { rev: 1, state: '{}', status: 'waiting', atMs },
    packages: { 'p|1': retrying, 'q|1': running },
  }
  return {
    ...emptyJournal('n'),
    bootId: 'before',
    cordonRetriesAtMs: [atMs],
    taintUnliftedSinceMs: atMs,
    staticPods: { pods: [staticPod], sinceMs: atMs },
    skyhooks: {
      soaking: { ...record, soak: { sinceMs: atMs, readySinceMs: atMs, daemonSets: [] } },
      waiting: { ...record, drain: { state: 'waiting', yieldCount: 0, sinceMs: atMs } },
      paused: { ...record, drain: { state: 'paused', yieldCount: 1, untilMs: atMs, reason } },
    },
  } satisfies StoredJournal
}

/** What `journalAt` has at this moment, with what does not keep to it. */
function expectedAt(atMs: number, startedOverMs: number, pausedMs = atMs, retryMs = atMs) {
  const text = JSON.stringify(journalAt(atMs))
    .replaceAll(`"readySinceMs":${atMs},`, '')
    .replaceAll(/"(sinceMs|taintUnliftedSinceMs|interruptedAtMs)":-?\d+/g, `"$1":${startedOverMs}`)
    .replaceAll(/"startedAtMs":-?\d+,"steps"/g, `"startedAtMs":${startedOverMs},"steps"`)
    .replaceAll(/"untilMs":-?\d+/g, `"untilMs":${pausedMs}`)
    .replaceAll(/"retryAtMs":-?\d+/g, `"retryAtMs":${retryMs}`)
  return JSON.parse(text) as unknown
}

describe('the journal of an earlier agent', () => {
  test('a journal of the same boot stays as it is, whatever the wall clock shows', () => {
    const journal = { ...journalAt(nowMs - 1_000), bootId: 'this' }
    expect(carryTimes({ ...journal, wallOffsetMs: wallOffsetMs + hourMs }, base)).toEqual(journal)
  })

  test.for<[string, { readonly upMs: number; readonly stored?: number }]>([
    ['an earlier boot', { upMs: 5 * hourMs, stored: wallOffsetMs - 5 * hourMs }],
    ['a shorter boot', { upMs: 1_000, stored: wallOffsetMs - 1_000 }],
    ['an agent that counted by the wall clock', { upMs: wallOffsetMs }],
  ])('a journal of %s has its moments where the wall clock had them', ([, { upMs, stored }]) => {
    const journal = journalAt(upMs - 1_000)
    const carried = carryTimes({ ...journal, ...(stored !== undefined && { wallOffsetMs: stored }) }, base)
    expect(carried).toEqual(expectedAt(-1_000, nowMs))
  })

  test('a journal of the future has no wait that is longer than its limit', () => {
    const journal = { ...journalAt(nowMs), wallOffsetMs: wallOffsetMs + 24 * hourMs }
    expect(carryTimes(journal, base)).toEqual(expectedAt(nowMs, nowMs, nowMs + 1_800_000, nowMs + 300_000))
  })
})

test('a node whose clock was set back a day at a boot retries a failed stage within its longest pause', () => {
  const node = new NodeSimulator()
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/a' } } })
  node.settleFor(1_000)
  node.exitCodes.clear()
  const { nowMs } = node
  node.journal = carryTimes({ ...node.journal, wallOffsetMs: 24 * hourMs }, { nowMs, wallOffsetMs: 0, bootId: 'next' })
  node.restartAgent()
  node.settleFor(301_000)
  expect(node.status()).toBe('complete')
})
