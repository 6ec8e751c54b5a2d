import { beforeEach, expect, test } from 'vitest'
import type { EventInput } from '../../kube/events.ts'
import type { StageEvent, TimedReason } from '../../stages/model/plan.ts'
import { createVirtualClock } from '../../../test/support/virtual-clock.ts'
import { createEventReporter, type EventReporter } from './reporter.ts'

let events: EventInput[]
let lines: string[]
let fields: object[]
let clock: ReturnType<typeof createVirtualClock>
let reporter: EventReporter
let cordoner: string | undefined
let isNodeKnown: boolean

beforeEach(() => {
  ;[events, lines, fields] = [[], [], []]
  ;[cordoner, isNodeKnown] = [undefined, true]
  clock = createVirtualClock()
  const write =
    (level: string) =>
    (lineFields: object, message: string): void => {
      lines.push(`${level} ${message}`)
      fields.push(lineFields)
    }
  reporter = createEventReporter({
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    recorder: { record: (event) => void events.push(event) },
    node: () => (isNodeKnown ? { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } } : undefined),
    findCordoner: async () => cordoner,
  })
})

const reportEvent = (event: StageEvent): void => reporter.report([event], new Map())
const reportReason = (reason: TimedReason['reason'], message: string, sinceMs = clock.wallMs() - 5_000): void =>
  reporter.report([], new Map([['s', { reason, message, sinceMs }]]))
const eventTexts = (): string[] => events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)

test.each<[StageEvent, string, string?]>([
  [
    { type: 'began', skyhook: 's', generation: 3 },
    'info work started',
    'Normal SkyhookStarted: Skyhook s starts on this node',
  ],
  [{ type: 'completed', skyhook: 's' }, 'info complete', 'Normal SkyhookCompleted: Skyhook s is complete on this node'],
  [{ type: 'stageCompleted', skyhook: 's', package: 'p', stage: 'apply' }, 'info stage completed'],
  [
    {
      type: 'stageFailed',
      skyhook: 's',
      package: 'p',
      stage: 'apply',
      reason: 'CheckFailed',
      message: 'exited 1',
      failures: 2,
    },
    'warn stage failed',
    'Warning CheckFailed: Skyhook s, package p: exited 1',
  ],
  [
    { type: 'stepUnknown', skyhook: 's', package: 'p', step: 'apply a.sh', detail: 'power cut' },
    'warn step outcome unknown, repeating the step',
    'Warning StepOutcomeUnknown: Skyhook s, package p: the outcome of apply a.sh is unknown (power cut); repeating it',
  ],
  [{ type: 'superseded', skyhook: 's', package: 'p', stage: 'config' }, 'info stage restarts with the changed spec'],
  [
    { type: 'interrupted', skyhook: 's', interrupt: 'reboot' },
    'info interrupt completed',
    'Normal InterruptCompleted: Skyhook s: reboot',
  ],
  [
    { type: 'interruptRequired', skyhook: 's', package: 'p', message: 'new kernel' },
    'info package requires its interrupt',
    'Normal InterruptRequired: Skyhook s, package p needs its interrupt: new kernel',
  ],
  [
    { type: 'cordonChangedExternally', skyhook: 's', unschedulable: false },
    'warn someone else changed the cordon of a node that we hold',
    'Warning CordonChanged: someone uncordoned the node while Skyhook s holds it',
  ],
  [
    { type: 'reset', skyhook: 's' },
    'info annotation removed, all packages run again',
    'Normal SkyhookReset: Skyhook s was reset on this node; all packages run again',
  ],
  [
    { type: 'edited', skyhook: 's', package: 'p' },
    'info annotation edited, package runs again',
    'Normal PackageRerun: Skyhook s, package p runs again after an edit of the annotation',
  ],
  [
    { type: 'editIgnored', skyhook: 's', message: 'unknown stage "x"' },
    'warn annotation edit ignored',
    'Warning EditIgnored: Skyhook s: unknown stage "x"',
  ],
  [{ type: 'republished', skyhook: 's', message: 'registered again' }, 'info published state restored'],
  [
    { type: 'startedOver', skyhook: 's' },
    'warn host has no journal of the work that the Node shows, all packages run again',
    'Warning HostStateLost: Skyhook s: the host has no journal of the work that the Node shows; all packages run again',
  ],
  [
    { type: 'adopted', skyhook: 's' },
    'info adopted the work of the operator',
    'Normal OperatorWorkAdopted: Skyhook s: adopted the work of the operator on this node',
  ],
  [
    { type: 'rebootNotRepeated', skyhook: 's' },
    'info reboot skipped: the host rebooted for this spec before its disk was lost',
    'Normal RebootSkipped: Skyhook s: the host already rebooted for this spec before it lost its disk; it does not reboot again',
  ],
  [{ type: 'orphaned', skyhook: 's' }, 'info Skyhook deleted without uninstall, its files stay on the host'],
])('the fact $type becomes one log line and at most one Event', (event, line, text) => {
  reportEvent(event)
  expect(lines).toEqual([line])
  expect(eventTexts()).toEqual(text === undefined ? [] : [text])
  for (const { regarding } of events) expect(regarding).toEqual({ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' })
})

test('a log line has the message of a fact as its detail and never two keys of one name', () => {
  reportEvent({ type: 'editIgnored', skyhook: 's', message: 'unknown stage' })
  expect(fields).toEqual([{ skyhook: 's', message: undefined, detail: 'unknown stage' }])
})

test.each([
  ['drain-bot', 'the node was cordoned by drain-bot while Skyhook s holds it'],
  [undefined, 'the node was cordoned by someone else while Skyhook s holds it'],
])('the Event of a cordon names its writer %s', async (name, message) => {
  cordoner = name
  reportEvent({ type: 'cordonChangedExternally', skyhook: 's', unschedulable: true })
  await Promise.resolve()
  await Promise.resolve()
  expect(eventTexts()).toEqual([`Warning CordonChanged: ${message}`])
})

test('a fact is logged without an Event while the Node is unknown', () => {
  isNodeKnown = false
  reportEvent({ type: 'completed', skyhook: 's' })
  expect(lines).toEqual(['info complete'])
  expect(events).toEqual([])
})

test('a reason that lasts is reported once, and again when its message changes', () => {
  reportReason('ImagePull', 'no such tag')
  reportReason('ImagePull', 'no such tag')
  expect(eventTexts()).toEqual(['Warning ImagePull: Skyhook s: no such tag'])
  reportReason('ImagePull', 'unauthorized')
  expect(eventTexts().slice(1)).toEqual(['Warning ImagePull: Skyhook s: unauthorized'])
  expect(lines).toEqual(['info not complete', 'info not complete'])
})

test('a reason that went away is reported again when it returns', () => {
  reportReason('ImagePull', 'no such tag')
  reporter.report([], new Map())
  reportReason('ImagePull', 'no such tag')
  expect(events).toHaveLength(2)
})

test('a reason is not reported before it has lasted two seconds', () => {
  reportReason('ImagePull', 'no such tag', clock.wallMs() - 1_999)
  expect([events, lines]).toEqual([[], []])
  reportReason('ImagePull', 'no such tag', clock.wallMs() - 2_000)
  expect(events).toHaveLength(1)
})

test('a wait of every healthy rollout is logged for debugging only', () => {
  reportReason('WaitingForSlot', '3 of 3 slots are held')
  expect(lines).toEqual(['debug waiting'])
  expect(events).toEqual([])
})

test.each(['StepFailed', 'CheckFailed'] as const)(
  'the reason %s writes no second Event beside the failed stage',
  (reason) => {
    reportReason(reason, 'package p 1.0.0: exited 1')
    expect(lines).toEqual(['info not complete'])
    expect(events).toEqual([])
  },
)

test('the age of a reason is that of the oldest Skyhook with it', () => {
  const nowMs = clock.wallMs()
  reporter.report(
    [],
    new Map<string, TimedReason>([
      ['a', { reason: 'Paused', message: '', sinceMs: nowMs - 4_000 }],
      ['b', { reason: 'Paused', message: '', sinceMs: nowMs - 9_000 }],
      ['c', { reason: 'ImagePull', message: '', sinceMs: nowMs - 1_000 }],
    ]),
  )
  expect([...reporter.reasonAges()]).toEqual([
    ['Paused', 9],
    ['ImagePull', 1],
  ])
})
