import { describe, expect, test } from 'vitest'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { CensusNode } from '../model/node-facts.ts'
import type { SkyhookStatus } from '../model/skyhook-status.ts'
import { nextStatus } from '../status/status.ts'
import { imageTagEvents, problemEvents, skippedNodeEvents, transitionEvents } from './events.ts'
import {
  allAgents,
  countsOf,
  failedForGood,
  nodeReporting,
  skyhookWith,
} from '../../../test/kit/objects/census-objects.ts'

const nowMs = Date.UTC(2026, 10, 20, 14)
const failing = (name: string, message = 'apply.sh ended with 1'): CensusNode =>
  nodeReporting(name, { ...failedForGood, reason: ['StepFailed', message] })

describe('transition events', () => {
  const statusOf = (nodes: CensusNode[], previous?: SkyhookStatus, isSpecPropagating = false): SkyhookStatus => {
    const skyhook: Skyhook = skyhookWith(previous === undefined ? {} : { status: previous })
    return nextStatus({
      skyhook,
      counts: countsOf(skyhook, nodes),
      finalizer: { action: 'nothing' },
      isSpecPropagating,
      mayFailuresBeOld: false,
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

  test('a second compartment that stops is reported although the Skyhook is stalled already', () => {
    const stalledAt = (...compartments: [name: string, shouldStop: boolean][]): SkyhookStatus => ({
      conditions: [
        {
          type: 'Stalled',
          status: 'True',
          reason: 'RolloutStopped',
          message: compartments.join(),
          lastTransitionTime: '2026-11-20T14:00:00Z',
        },
      ],
      compartmentStatuses: Object.fromEntries(
        compartments.map(([name, shouldStop]) => [
          name,
          { matched: 1, ceiling: 1, inProgress: 0, completed: 0, progressPercent: 0, batchState: { shouldStop } },
        ]),
      ),
    })
    const one = stalledAt(['a', true], ['b', false])
    const both = stalledAt(['a', true], ['b', true])
    expect(reasons(undefined, one)).toEqual(['Warning RolloutStopped'])
    expect(reasons(one, both)).toEqual(['Warning RolloutStopped'])
    expect(reasons(both, both)).toEqual([])
    expect(reasons(both, one)).toEqual([])
  })

  test('a failing node that retries and fails again reports nothing new', () => {
    const [between, during] = [
      failing('n1'),
      nodeReporting('n1', { ...failedForGood, status: 'in_progress', reason: ['StepFailed', 'x'] }),
    ]
    const first = statusOf([between])
    const second = statusOf([during], first)
    expect([reasons(first, second), reasons(second, statusOf([between], second))]).toEqual([[], []])
  })

  test('an edit alone reports nothing', () => {
    const was = statusOf(complete)
    expect(reasons(was, statusOf(complete, was, true))).toEqual([])
  })
})

describe('problem events', () => {
  test('a problem is reported once per message with its nodes, and again when it returns', () => {
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

  test('a problem of the Skyhook itself is not reported again for its nodes', () => {
    const of = (policy: PolicyKnowledge, reason: string, message: string): unknown => {
      const skyhook = skyhookWith({ spec: { deploymentPolicy: 'careful' } })
      const node = nodeReporting('a', { status: 'blocked', reason: [reason, message] })
      return problemEvents(countsOf(skyhook, [node], allAgents(), policy), new Set()).events
    }
    const refused = { state: 'unknown', why: 'HTTP 403', isRefused: true } as const
    expect(of({ state: 'missing' }, 'DeploymentPolicyNotFound', 'DeploymentPolicy "careful" not found')).toEqual([])
    expect(of(refused, 'ApiRequestRefused', 'HTTP 403')).toEqual([])
    expect(of(refused, 'ApiRequestRefused', 'HTTP 403 for a Lease')).toHaveLength(1)
    const invalid = skyhookWith({ spec: { packages: { a: { version: '1', image: 'a', dependsOn: { b: '1' } } } } })
    const message = countsOf(invalid, []).specProblem ?? ''
    const node = nodeReporting('a', { status: 'blocked', reason: ['InvalidSpec', message] })
    expect(problemEvents(countsOf(invalid, [node]), new Set()).events).toEqual([])
    expect(problemEvents(countsOf(skyhookWith(), [node]), new Set()).events).toHaveLength(1)
  })

  test('a silent agent is reported', () => {
    const counts = countsOf(skyhookWith(), [nodeReporting('a'), failing('b')], allAgents('silent'))
    expect(problemEvents(counts, new Set()).events).toEqual([
      { type: 'Warning', reason: 'AgentNotReady', message: 'a, b: no Ready agent for ten minutes' },
    ])
  })

  test('five messages of a reason are reported at a time, regardless of how many there are', () => {
    const all = Array.from({ length: 40 }, (_, at) => failing(`n${at + 10}`, `message ${at}`))
    const first = problemEvents(countsOf(skyhookWith(), all), new Set())
    expect(first.events.map(({ message }) => message)).toEqual(
      [0, 1, 2, 3, 4].map((at) => `n${at + 10}: message ${at}`),
    )
    const second = problemEvents(countsOf(skyhookWith(), all), first.problems)
    expect(second).toEqual({ events: [], problems: first.problems })
    const later = problemEvents(countsOf(skyhookWith(), all.slice(2)), second.problems)
    expect(later.events.map(({ message }) => message)).toEqual(['n15: message 5', 'n16: message 6'])
  })

  test('many messages of one reason do not hide another reason', () => {
    const all = Array.from({ length: 40 }, (_, at) => failing(`n${at + 10}`, `message ${at}`))
    const drain = nodeReporting('x', { status: 'in_progress', reason: ['DrainBlocked', 'pod shop/cart'] })
    const { events } = problemEvents(countsOf(skyhookWith(), [...all, drain]), new Set())
    expect(events.map(({ reason }) => reason).toSorted()).toEqual([
      'DrainBlocked',
      ...Array<string>(5).fill('StepFailed'),
    ])
  })

  test('an annotation that no agent writes causes no Event', () => {
    const nodes = ['x'.repeat(200), 'not a reason', ''].map((reason, at) =>
      nodeReporting(`n${at}`, { status: 'blocked', reason: [reason, 'x'] }),
    )
    expect(problemEvents(countsOf(skyhookWith(), nodes), new Set()).events).toEqual([])
  })
})

test('an uninstall that skipped nodes names them', () => {
  expect(skippedNodeEvents({ action: 'remove', skipped: ['a', 'b'] })[0]?.message).toContain('from a, b:')
  expect(skippedNodeEvents({ action: 'remove', skipped: [] })).toEqual([])
})

describe('tags of images', () => {
  test('many ignored tags are one Event with a message that the API server takes', () => {
    const { events } = imageTagEvents(specWith(...Array.from({ length: 64 }, (_, at) => `r/p${at}:latest`)), new Set())
    expect(events).toHaveLength(1)
    expect(events[0]?.message.length).toBeLessThanOrEqual(1_024)
  })

  const specWith = (...images: readonly string[]) => ({
    packages: Object.fromEntries(images.map((image, at) => [`p${at}`, { version: '1.2.0', image }])),
  })

  test.each([
    'registry.example.com/p',
    'registry.example.com:5000/p',
    'registry.example.com:5000/p:1.2.0',
    'p:1.2.0',
    '',
  ])('the image "%s" says nothing else than the version 1.2.0', (image) => {
    expect(imageTagEvents(specWith(image), new Set()).events).toEqual([])
  })

  test.each([
    ['registry.example.com:5000/p:1.1.0', '1.1.0'],
    ['p:latest', 'latest'],
    ['r/p:1.1.0@sha256:00', '1.1.0'],
  ])('the tag of the image %s is reported as ignored', (image, tag) => {
    expect(imageTagEvents(specWith(image), new Set()).events).toEqual([
      {
        type: 'Warning',
        reason: 'ImageTagIgnored',
        message: `ignored: the tag ${tag} of package p0 (version 1.2.0 is pulled)`,
      },
    ])
  })

  test('an ignored tag is reported once, and again after it was corrected', () => {
    const first = imageTagEvents(specWith('r/p:1'), new Set())
    expect(imageTagEvents(specWith('r/p:1'), first.problems).events).toEqual([])
    expect(imageTagEvents(specWith('r/p:1', 'r/q:2'), first.problems).events).toHaveLength(1)
    expect(imageTagEvents(specWith('r/p'), first.problems)).toEqual({ events: [], problems: new Set() })
  })
})
