import { expect, test } from 'vitest'
import {
  allAgents,
  countsOf,
  entry,
  nodeReporting,
  type NodeReport,
  skyhookWith,
} from '../../../test/kit/objects/census-objects.ts'
import type { PublishedReason } from '../../schemas/annotations.ts'
import { failedAtMs, nextFailureAtMs } from './compartment-status.ts'

const sinceMs = Date.UTC(2026, 10, 20, 14)
const minuteMs = 60_000

const factsOf = (reports: readonly NodeReport[], agents = allAgents()) =>
  countsOf(
    skyhookWith(),
    reports.map((report, at) => nodeReporting(`n${at}`, report)),
    agents,
  ).nodes

/** Minutes from the start of the reason to the failure; Infinity: never. */
function failsAfterMinutes(report: NodeReport, agents = allAgents()): number {
  const [fact] = factsOf([report], agents)
  return fact === undefined ? NaN : (failedAtMs(fact) - sinceMs) / minuteMs
}

const because = (reason: string, more: Partial<PublishedReason> = {}): Pick<NodeReport, 'reason'> => ({
  reason: [reason, 'why', { since: new Date(sinceMs).toISOString(), ...more }],
})
const attempts = (restarts: number, state: 'erroring' | 'in_progress' = 'erroring'): Pick<NodeReport, 'entries'> => ({
  entries: [entry({ stage: 'apply', state, restarts })],
})
const nothing: Pick<NodeReport, 'entries'> = { entries: [] }
const once = -Infinity
const never = Infinity

const rows: readonly (readonly [what: string, report: NodeReport, minutes: number])[] = [
  ['a complete node', {}, never],
  ['a node at work', { status: 'in_progress', ...attempts(0, 'in_progress') }, never],
  ['a first failed attempt', { status: 'erroring', ...because('StepFailed'), ...attempts(1) }, never],
  ['a second failed attempt', { status: 'erroring', ...because('CheckFailed'), ...attempts(2) }, never],
  ['a third failed attempt', { status: 'erroring', ...because('StepFailed'), ...attempts(3) }, once],
  ['the attempt after three failed ones', { status: 'in_progress', ...attempts(3, 'in_progress') }, once],
  ['the attempt after a failed one', { status: 'in_progress', ...attempts(1, 'in_progress') }, never],
  [
    'a first failure of the package that the reason names, beside a third one of another',
    {
      status: 'erroring',
      ...because('StepFailed', { package: 'tuning|1.1.0' }),
      entries: [
        entry({ stage: 'apply', state: 'erroring', restarts: 1 }),
        entry({ name: 'old', stage: 'config', state: 'erroring', restarts: 3 }),
      ],
    },
    never,
  ],
  [
    'failed attempts of a stage that is not tried any more',
    { status: 'in_progress', ...attempts(3, 'erroring') },
    never,
  ],
  [
    'the image of a corrected version, on its way to a host where the old one failed three times',
    { status: 'in_progress', ...because('Preparing'), ...attempts(3) },
    never,
  ],
  [
    'a first attempt that took longer than stageTimeout',
    { status: 'erroring', ...because('StepFailed', { code: 'stage-timeout' }), ...attempts(1) },
    once,
  ],
  ['a third refused reboot', { status: 'erroring', ...because('RebootRefused'), ...attempts(3) }, once],
  [
    'a fourth reboot, on its way',
    { status: 'in_progress', ...because('RebootPending'), ...attempts(3, 'in_progress') },
    once,
  ],
  [
    'a reboot that is refused before anything is tried',
    { status: 'erroring', ...because('RebootRefused'), ...nothing },
    2,
  ],
  ['a reboot loop', { status: 'erroring', ...because('RebootLoop'), ...attempts(0) }, once],
  ['an invalid package', { status: 'erroring', ...because('InvalidPackage'), ...nothing }, 2],
  ['an image without a code', { status: 'waiting', ...because('ImagePull'), ...nothing }, never],
  ...['not-found', 'unauthorized', 'denied', 'bad-reference'].map(
    (code) =>
      [
        `an image of which the registry says ${code}`,
        { status: 'waiting', ...because('ImagePull', { code }), ...nothing },
        2,
      ] as const,
  ),
  ...['unreachable', 'tls', 'rate-limited', 'unavailable', 'bad-response'].map(
    (code) =>
      [
        `an image with a registry that is ${code}`,
        { status: 'waiting', ...because('ImagePull', { code }), ...nothing },
        never,
      ] as const,
  ),
  ['a missing Secret on a node with a slot', { status: 'in_progress', ...because('ReferenceMissing'), ...nothing }, 2],
  ['a refused request', { status: 'blocked', ...because('ApiRequestRefused') }, 2],
  ['an API server that does not answer', { status: 'in_progress', ...because('ApiServerUnavailable') }, never],
  ['a webhook that puts an eviction off', { status: 'in_progress', ...because('DrainBlocked') }, never],
  ['a Node that is not Ready', { status: 'in_progress', ...because('NodeNotReady') }, never],
  ['a taint', { status: 'blocked', ...because('TaintNotTolerated') }, once],
  [
    'a taint of the Node not being Ready',
    { status: 'blocked', ...because('TaintNotTolerated', { code: 'node-condition' }) },
    never,
  ],
  ['an invalid spec', { status: 'blocked', ...because('InvalidSpec') }, once],
  ['a full disk', { status: 'blocked', ...because('HostUnusable') }, 10],
  ['a reason of a newer agent', { status: 'blocked', ...because('Unheard') }, never],
  ['a blocked node that does not say why', { status: 'blocked' }, never],
  [
    'a reason without a time',
    { status: 'waiting', ...because('ReferenceMissing', { since: 'yesterday' }), ...nothing },
    never,
  ],
]

test.each(rows)('for a node with %s, the failure is final %#', (_, report, minutes) => {
  expect(failsAfterMinutes(report)).toBe(minutes)
})

test('the last report of a silent agent is not taken for the state of its node', () => {
  const failed: NodeReport = { status: 'erroring', ...because('StepFailed'), ...attempts(3) }
  expect(failsAfterMinutes(failed, allAgents('silent'))).toBe(never)
  expect(failsAfterMinutes(failed, allAgents('unready'))).toBe(once)
})

test('the next failure is the soonest that is still to come', () => {
  const missing = (since: number): NodeReport => ({
    status: 'waiting',
    ...because('ReferenceMissing', { since: new Date(sinceMs + since).toISOString() }),
  })
  const facts = factsOf([missing(0), missing(30_000), missing(90_000), {}])
  expect([0, 120_000, 150_000, 210_000].map((atMs) => nextFailureAtMs(facts, sinceMs + atMs) - sinceMs)).toEqual([
    120_000,
    150_000,
    210_000,
    Infinity,
  ])
})
