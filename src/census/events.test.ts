import { describe, expect, test } from 'vitest'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { CensusNode } from './node-facts.ts'
import type { SkyhookStatus } from './skyhook-status.ts'
import { nextStatus } from './status.ts'
import { problemEvents, skippedNodeEvents, transitionEvents } from './events.ts'
import { allAgents, countsOf, nodeReporting, skyhookWith } from '../../test/support/census-objects.ts'

const nowMs = Date.UTC(2026, 10, 20, 14)
const failing = (name: string, message = 'apply.sh ended with 1'): CensusNode =>
  nodeReporting(name, { status: 'erroring', reason: ['StepFailed', message] })

describe('transition events', () => {
  const statusOf = (nodes: CensusNode[], previous?: SkyhookStatus, isSpecPropagating = false): SkyhookStatus => {
    const skyhook: Skyhook = skyhookWith(previous === undefined ? {} : { status: previous })
    return nextStatus({
      skyhook,
      counts: countsOf(skyhook, nodes),
      finalizer: { action: 'nothing' },
      isSpecPropagating,
      nowMs,
    })
  }
  const complete = [nodeReporting('n1')]
  const working = [nodeReporting('n1', { status: 'in_progress' })]
  const reasons = (before: SkyhookStatus | undefined, after: SkyhookStatus) =>
    transitionEvents(before, after).map(({ type, reason }) => `${type} ${reason}`)

  test.each<[string, CensusNode[] | undefined, CensusNode[], string[]]>([
    ['that becomes complete reports Complete', working, complete, ['Normal Complete']],
    ['that is complete in its first status reports Complete', undefined, complete, ['Normal Complete']],
    ['that continues its work reports nothing', working, working, []],
    ['with new work after completion reports Incomplete', complete, working, ['Normal Incomplete']],
    ['that stalls reports the reason', working, [failing('n1')], ['Warning NodesErroring']],
    ['that stays stalled reports nothing new', [failing('n1')], [failing('n1'), failing('n2')], []],
  ])('a Skyhook %s', (_, before, after, expected) => {
    const was = before === undefined ? undefined : statusOf(before)
    expect(reasons(was, statusOf(after, was))).toEqual(expected)
  })

  test('an edit alone reports nothing', () => {
    const was = statusOf(complete)
    expect(reasons(was, statusOf(complete, was, true))).toEqual([])
  })
})

describe('problem events', () => {
  test('a problem is reported once per message with its nodes, and again after it was gone', () => {
    const skyhook = skyhookWith()
    const first = problemEvents(countsOf(skyhook, [failing('a'), failing('b'), failing('c', 'disk full')]), new Set())
    expect(first.events).toEqual([
      { type: 'Warning', reason: 'StepFailed', message: 'a, b: apply.sh ended with 1' },
      { type: 'Warning', reason: 'StepFailed', message: 'c: disk full' },
    ])
    const more = problemEvents(countsOf(skyhook, [failing('a'), failing('b'), failing('d')]), first.problems)
    expect(more.events).toEqual([])
    const gone = problemEvents(countsOf(skyhook, [nodeReporting('a')]), more.problems)
    expect(problemEvents(countsOf(skyhook, [failing('a')]), gone.problems).events).toHaveLength(1)
  })

  test('ordinary waits and requested pauses are not reported', () => {
    const nodes = ['WaitingForSlot', 'Preparing', 'Paused', 'Ignored', 'RebootPending'].map((reason, at) =>
      nodeReporting(`n${at}`, { status: 'waiting', reason: [reason, 'x'] }),
    )
    expect(problemEvents(countsOf(skyhookWith(), nodes), new Set()).events).toEqual([])
  })

  test('a silent agent is reported', () => {
    const counts = countsOf(skyhookWith(), [nodeReporting('a'), failing('b')], allAgents('silent'))
    expect(problemEvents(counts, new Set()).events).toEqual([
      { type: 'Warning', reason: 'AgentNotReady', message: 'a, b: no Ready agent for ten minutes' },
    ])
  })

  test('problems are reported a few at a time, regardless of how many there are', () => {
    const counts = countsOf(
      skyhookWith(),
      Array.from({ length: 40 }, (_, at) => failing(`n${at}`, `message ${at}`)),
    )
    const first = problemEvents(counts, new Set())
    expect(first.events).toHaveLength(5)
    expect(problemEvents(counts, first.problems).events).toHaveLength(5)
  })
})

test('an uninstall that skipped nodes names them', () => {
  expect(skippedNodeEvents({ action: 'remove', skipped: ['a', 'b'] })[0]?.message).toContain('from a, b:')
  expect(skippedNodeEvents({ action: 'remove', skipped: [] })).toEqual([])
})
