import { describe, expect, test } from 'vitest'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { CensusNode } from './node-facts.ts'
import type { SkyhookStatus } from './skyhook-status.ts'
import { nextStatus } from './status.ts'
import { problemsOf, skippedNodes, turnsOf } from './events.ts'
import { agentsAll, counted, nodeSaying, skyhookWith } from '../../test/support/census-objects.ts'

const nowMs = Date.UTC(2026, 10, 20, 14)
const failing = (name: string, message = 'apply.sh ended with 1'): CensusNode =>
  nodeSaying(name, { status: 'erroring', reason: ['StepFailed', message] })

describe('what turns', () => {
  const statusOf = (nodes: CensusNode[], previous?: SkyhookStatus, isFresh = false): SkyhookStatus => {
    const skyhook: Skyhook = skyhookWith(previous === undefined ? {} : { status: previous })
    return nextStatus({ skyhook, counts: counted(skyhook, nodes), finalizer: { do: 'nothing' }, isFresh, nowMs })
  }
  const complete = [nodeSaying('n1')]
  const working = [nodeSaying('n1', { status: 'in_progress' })]
  const reasons = (before: SkyhookStatus | undefined, after: SkyhookStatus) =>
    turnsOf(before, after).map(({ type, reason }) => `${type} ${reason}`)

  test.each<[string, CensusNode[] | undefined, CensusNode[], string[]]>([
    ['becoming complete', working, complete, ['Normal Complete']],
    ['complete from the first status on', undefined, complete, ['Normal Complete']],
    ['going on', working, working, []],
    ['work again', complete, working, ['Normal Incomplete']],
    ['stalling', working, [failing('n1')], ['Warning NodesErroring']],
    ['staying stalled', [failing('n1')], [failing('n1'), failing('n2')], []],
  ])('%s', (_, before, after, expected) => {
    const was = before === undefined ? undefined : statusOf(before)
    expect(reasons(was, statusOf(after, was))).toEqual(expected)
  })

  test('an edit alone is no news', () => {
    const was = statusOf(complete)
    expect(reasons(was, statusOf(complete, was, true))).toEqual([])
  })
})

describe('problems', () => {
  test('are told once for each message, with the nodes, and again after they had gone', () => {
    const skyhook = skyhookWith()
    const first = problemsOf(counted(skyhook, [failing('a'), failing('b'), failing('c', 'disk full')]), new Set())
    expect(first.told).toEqual([
      { type: 'Warning', reason: 'StepFailed', message: 'a, b: apply.sh ended with 1' },
      { type: 'Warning', reason: 'StepFailed', message: 'c: disk full' },
    ])
    const more = problemsOf(counted(skyhook, [failing('a'), failing('b'), failing('d')]), first.problems)
    expect(more.told).toEqual([])
    const gone = problemsOf(counted(skyhook, [nodeSaying('a')]), more.problems)
    expect(problemsOf(counted(skyhook, [failing('a')]), gone.problems).told).toHaveLength(1)
  })

  test('are not what every healthy rollout shows, nor what somebody asked for', () => {
    const nodes = ['WaitingForSlot', 'Preparing', 'Paused', 'Ignored', 'RebootPending'].map((reason, at) =>
      nodeSaying(`n${at}`, { status: 'waiting', reason: [reason, 'x'] }),
    )
    expect(problemsOf(counted(skyhookWith(), nodes), new Set()).told).toEqual([])
  })

  test('are silent agents too', () => {
    const counts = counted(skyhookWith(), [nodeSaying('a'), failing('b')], agentsAll('silent'))
    expect(problemsOf(counts, new Set()).told).toEqual([
      { type: 'Warning', reason: 'AgentNotReady', message: 'a, b: no Ready agent for ten minutes' },
    ])
  })

  test('come a few at a time, however many messages there are', () => {
    const counts = counted(
      skyhookWith(),
      Array.from({ length: 40 }, (_, at) => failing(`n${at}`, `message ${at}`)),
    )
    const first = problemsOf(counts, new Set())
    expect(first.told).toHaveLength(5)
    expect(problemsOf(counts, first.problems).told).toHaveLength(5)
  })
})

test('nodes that were skipped are named', () => {
  expect(skippedNodes({ do: 'remove', skipped: ['a', 'b'] })[0]?.message).toContain('from a, b:')
  expect(skippedNodes({ do: 'remove', skipped: [] })).toEqual([])
})
