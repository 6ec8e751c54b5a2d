import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { emptyJournal, type Journal, type PackageRecord, type SkyhookRecord } from '../../schemas/journal.ts'
import { carryTimes } from './carry-times.ts'

const nowMs = 1_000_000_000
const hourMs = 3_600_000
const reason = { reason: 'DrainBlocked', message: 'm' } as const
const work = { digest: 'd', generation: 1, inputs: 'i', packageName: 'p', packageVersion: '1' }
const facts = { name: 'p', version: '1', image: 'i', restarts: 1, work }
const attempt = { number: 1, steps: [], inputs: 'x' }
const failure = { reason: 'StepFailed', message: 'm' } as const

/** A journal that has every kind of moment that something waits from, or for: this one. */
function journalAt(atMs: number): Journal {
  const retrying: PackageRecord = {
    ...facts,
    lastRequestedRunAtMs: atMs,
    progress: { state: 'retrying', stage: 'interrupt', retryAtMs: atMs, failure },
  }
  const running: PackageRecord = {
    ...facts,
    progress: { state: 'running', stage: 'apply', attempt: { ...attempt, startedAtMs: atMs } },
  }
  const record: SkyhookRecord = {
    uid: 'u',
    rev: 1,
    reboots: {},
    flags: {},
    installedVersions: {},
    lifecycle: { startedAtMs: atMs, generation: 1, interruptedAtMs: atMs },
    published: { rev: 1, state: '{}', status: 'waiting', atMs },
    packages: { 'p|1': retrying, 'q|1': running },
  }
  return {
    ...emptyJournal('n'),
    cordonRetriesAtMs: [atMs],
    taintUnliftedSinceMs: atMs,
    skyhooks: {
      soaking: { ...record, lifecycle: undefined, soak: { sinceMs: atMs, readySinceMs: atMs, daemonSets: [] } },
      waiting: { ...record, drain: { state: 'waiting', yieldCount: 0, sinceMs: atMs } },
      paused: { ...record, drain: { state: 'paused', yieldCount: 1, untilMs: atMs, reason } },
    },
  }
}

const momentsOf = ({ cordonRetriesAtMs = [], taintUnliftedSinceMs = 0, skyhooks }: Journal) => {
  const [waiting, paused] = [skyhooks['waiting'], skyhooks['paused']]
  const retrying = waiting?.packages['p|1']
  const running = waiting?.packages['q|1']
  return {
    cordonRetry: (cordonRetriesAtMs[0] ?? 0) - nowMs,
    taintUnlifted: taintUnliftedSinceMs - nowMs,
    waiting: waiting?.drain?.state === 'waiting' && waiting.drain.sinceMs - nowMs,
    paused: paused?.drain?.state === 'paused' && paused.drain.untilMs - nowMs,
    published: (waiting?.published?.atMs ?? 0) - nowMs,
    interrupted: (waiting?.lifecycle?.interruptedAtMs ?? 0) - nowMs,
    requested: (retrying?.lastRequestedRunAtMs ?? 0) - nowMs,
    retry: retrying?.progress.state === 'retrying' && retrying.progress.retryAtMs - nowMs,
    started: running?.progress.state === 'running' && running.progress.attempt.startedAtMs - nowMs,
  }
}

describe('the journal of an earlier agent', () => {
  test('a journal keeps its moments when steady time continues', () => {
    const journal = journalAt(nowMs - 60_000)
    expect(carryTimes(journal, { nowMs, isContinued: true })).toEqual(journal)
  })

  test('a journal of the future has no wait that is longer than its limit', () => {
    const carried = carryTimes(journalAt(nowMs + 24 * hourMs), { nowMs, isContinued: false })
    expect(momentsOf(carried)).toEqual({
      cordonRetry: 0,
      taintUnlifted: 0,
      waiting: 0,
      paused: 1_800_000,
      published: 0,
      interrupted: 0,
      requested: 0,
      retry: 300_000,
      started: 0,
    })
  })

  test('a journal of an earlier boot has no limit that is over by a clock that went forward', () => {
    const carried = carryTimes(journalAt(nowMs - hourMs), { nowMs, isContinued: false })
    expect(momentsOf(carried)).toMatchObject({
      taintUnlifted: 0,
      waiting: 0,
      interrupted: 0,
      started: 0,
      requested: -hourMs,
    })
    // the node has not been seen Ready since
    expect(carried.skyhooks['soaking']?.soak).toEqual({ sinceMs: nowMs, daemonSets: [] })
  })
})

test('a node whose clock was set back a day at a boot retries a failed stage within its longest pause', () => {
  const node = new NodeSimulator()
  node.nowMs = nowMs
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/a' } } })
  node.settleFor(1_000)
  node.exitCodes.clear()
  node.nowMs -= 24 * hourMs
  node.journal = carryTimes(node.journal, { nowMs: node.nowMs, isContinued: false })
  node.restartAgent()
  node.settleFor(301_000)
  expect(node.status()).toBe('complete')
})
