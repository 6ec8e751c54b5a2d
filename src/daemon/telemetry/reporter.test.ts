import { beforeEach, describe, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { EventInput } from '../../kube/events.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { StageEvent, TimedReason } from '../../stages/model/plan.ts'
import { createLog } from './log.ts'
import { createEventReporter, type EventReporter } from './reporter.ts'

let clock: VirtualClock
let node: KubernetesNode | undefined
let events: EventInput[]
let lines: string[]
let cordoner: string | undefined
let reporter: EventReporter

beforeEach(() => {
  clock = createVirtualClock()
  node = { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } }
  events = []
  lines = []
  cordoner = undefined
  const logAt = (level: string) => (_: object, message: string) => void lines.push(`${level}: ${message}`)
  reporter = createEventReporter({
    clock,
    log: { ...createLog('silent', {}), debug: logAt('debug'), info: logAt('info'), warn: logAt('warn') },
    recorder: { record: (event) => void events.push(event) },
    node: () => node,
    findCordoner: async () => cordoner,
  })
})

const report = (event: StageEvent): void => reporter.report([event], new Map())
const waiting = (reason: TimedReason['reason'], message = 'why'): ReadonlyMap<string, TimedReason> =>
  new Map([['s', { reason, message, sinceMs: clock.wallMs() }]])

describe('events', () => {
  test('an Event regards the current Node', () => {
    report({ type: 'completed', skyhook: 's' })
    expect(events).toEqual([
      {
        regarding: { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' },
        type: 'Normal',
        reason: 'SkyhookCompleted',
        message: 'Skyhook s is complete on this node',
      },
    ])
    expect(lines).toEqual(['info: complete'])
  })

  test('an event without a Node is only logged', () => {
    node = undefined
    report({ type: 'began', skyhook: 's', generation: 1 })
    expect([events, lines.length]).toEqual([[], 1])
  })

  test.each<[StageEvent, string, string]>([
    [{ type: 'began', skyhook: 's', generation: 1 }, 'SkyhookStarted', 'Normal'],
    [{ type: 'foundComplete', skyhook: 's' }, 'SkyhookFoundComplete', 'Normal'],
    [{ type: 'reset', skyhook: 's' }, 'SkyhookReset', 'Normal'],
    [{ type: 'editIgnored', skyhook: 's', message: 'not JSON' }, 'EditIgnored', 'Warning'],
    [{ type: 'startedOver', skyhook: 's' }, 'HostStateLost', 'Warning'],
    [{ type: 'adopted', skyhook: 's' }, 'OperatorWorkAdopted', 'Normal'],
    [{ type: 'uninstallFailed', skyhook: 's', package: 'p', message: 'exited 1' }, 'UninstallFailed', 'Warning'],
    [{ type: 'rebootNotRepeated', skyhook: 's' }, 'RebootSkipped', 'Normal'],
  ])('%o is an Event of reason %s and type %s', (event, reason, type) => {
    report(event)
    expect(events).toMatchObject([{ reason, type }])
  })

  test.each<StageEvent>([
    { type: 'stageCompleted', skyhook: 's', package: 'p', stage: 'apply' },
    { type: 'orphaned', skyhook: 's', leavesFiles: true },
    { type: 'orphaned', skyhook: 's', leavesFiles: false },
  ])('%o is logged without an Event', (event) => {
    report(event)
    expect([events, lines.length]).toEqual([[], 1])
  })

  test('a pod that was deleted after the timeout of its drain is a warning with its name', () => {
    reporter.podDeleted('shop/cart')
    expect(events).toMatchObject([
      { type: 'Warning', reason: 'PodDeleted', message: 'pod shop/cart deleted after the timeout of spec.drain' },
    ])
  })

  test('an uncordon by someone else names nobody', () => {
    report({ type: 'cordonChangedExternally', skyhook: 's', unschedulable: false })
    expect(events).toMatchObject([
      { reason: 'CordonChanged', message: expect.stringContaining('uncordoned') as string },
    ])
  })

  test.each([
    ['kubectl', 'cordoned by kubectl'],
    [undefined, 'cordoned by someone else'],
  ])('a cordon by %s is an Event that says so', async (manager, message) => {
    cordoner = manager
    report({ type: 'cordonChangedExternally', skyhook: 's', unschedulable: true })
    await clock.advance(0)
    expect(events).toMatchObject([{ message: expect.stringContaining(message) as string }])
  })
})

describe('reasons', () => {
  test('a reason that passes within two seconds is not reported', async () => {
    const reasons = waiting('InvalidPackage')
    reporter.report([], reasons)
    await clock.advance(1_999)
    reporter.report([], reasons)
    reporter.report([], new Map())
    expect([events, lines]).toEqual([[], []])
  })

  test('a reason that stays is reported once, and again when its message changes', async () => {
    const reasons = waiting('InvalidPackage')
    await clock.advance(2_000)
    reporter.report([], reasons)
    reporter.report([], reasons)
    expect(events).toMatchObject([{ reason: 'InvalidPackage', type: 'Warning', message: 'Skyhook s: why' }])
    const changed = waiting('InvalidPackage', 'another')
    await clock.advance(2_000)
    reporter.report([], changed)
    expect(events).toHaveLength(2)
    expect(lines).toEqual(['info: not complete', 'info: not complete'])
  })

  test('the Event of a reason has its code and its package, each where there is one', async () => {
    const about = { code: 'not-found', package: 'a|1.0.0' } as const
    const timed: TimedReason = { reason: 'ImagePull', message: 'why', sinceMs: clock.wallMs() }
    await clock.advance(2_000)
    reporter.report(
      [],
      new Map([
        ['s', { ...timed, ...about }],
        ['t', timed],
      ]),
    )
    expect(events.map(({ annotations }) => annotations)).toEqual([
      { 'skyhook.nvidia.com/code': 'not-found', 'skyhook.nvidia.com/package': 'a|1.0.0' },
      undefined,
    ])
  })

  test('a reason that came back is reported again', async () => {
    const reasons = waiting('InvalidPackage')
    await clock.advance(2_000)
    reporter.report([], reasons)
    reporter.report([], new Map())
    reporter.report([], reasons)
    expect(events).toHaveLength(2)
  })

  test('a wait that every healthy rollout has is logged for debugging only', async () => {
    const reasons = waiting('WaitingForSlot')
    await clock.advance(2_000)
    reporter.report([], reasons)
    expect([events, lines]).toEqual([[], ['debug: waiting']])
  })

  test('a failed step has its Event from the stage and none from its reason', async () => {
    const reasons = waiting('StepFailed')
    await clock.advance(2_000)
    reporter.report([], reasons)
    expect([events, lines]).toEqual([[], ['info: not complete']])
  })

  test('the age of a reason is that of the oldest Skyhook that has it', async () => {
    const old = { reason: 'WaitingForSlot', message: 'm', sinceMs: clock.wallMs() } as const
    const young = { ...old, sinceMs: clock.wallMs() + 7_000 }
    await clock.advance(10_000)
    reporter.report(
      [],
      new Map([
        ['a', young],
        ['b', old],
        ['c', young],
      ]),
    )
    expect([...reporter.reasonAges()]).toEqual([['WaitingForSlot', 10]])
    reporter.report([], new Map())
    expect(reporter.reasonAges().size).toBe(0)
  })
})
