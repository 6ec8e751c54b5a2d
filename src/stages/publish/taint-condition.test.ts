import { describe, expect, test } from 'vitest'
import { idleSnapshot, settings, viewOf } from '../../../test/kit/objects/plan-builder.ts'
import { runtimeRequiredCondition, statusKey } from '../../schemas/annotations.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { NodeCondition, Taint } from '../../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { known, type SkyhookView, type Snapshot, unknown } from '../model/snapshot.ts'
import { taintCondition } from './taint-condition.ts'

const nowMs = 1_000_000
const taint = settings.runtimeRequiredTaint
const desired =
  'no Skyhook with runtimeRequired selects the node, so nobody lifts the taint ' +
  'skyhook.nvidia.com=runtime-required:NoSchedule: apply one that does, or remove the taint'
const required: SkyhookSpec = { runtimeRequired: true }
const elsewhere: SkyhookSpec = { runtimeRequired: true, nodeSelectors: { matchLabels: { pool: 'other' } } }

type Case = {
  readonly taints?: readonly Taint[]
  readonly views?: readonly SkyhookView[]
  /** Message of the condition that the Node shows. */
  readonly shown?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly journal?: Partial<Journal>
  readonly change?: Partial<Snapshot>
}

const shownCondition = (message: string): NodeCondition => ({
  type: runtimeRequiredCondition,
  status: 'True',
  reason: 'RuntimeRequired',
  message,
  lastTransitionTime: '2020-01-01T00:00:00Z',
})

/** A node with the taint for a long time, and no Skyhook. */
function snapshotOf({ taints = [taint], views = [], shown, annotations = {}, journal, change }: Case): Snapshot {
  const idle = idleSnapshot()
  return {
    ...idle,
    nowMs,
    skyhooks: known(views),
    node: {
      metadata: { ...idle.node.metadata, annotations },
      spec: { taints },
      status: { conditions: shown === undefined ? [] : [shownCondition(shown)] },
    },
    journal: { ...idle.journal, taintUnliftedSinceMs: nowMs - 60_000, ...journal },
    ...change,
  }
}

/** The message that is written, `removed`, or nothing. */
function written(of: Case, isWriting = false): string | undefined {
  const { conditions, removedConditions } = taintCondition(snapshotOf(of), isWriting).patch
  return removedConditions.includes(runtimeRequiredCondition) ? 'removed' : conditions[0]?.message
}

describe('the condition of a taint that nobody lifts', () => {
  test.each<[string, Case]>([
    ['there is no Skyhook', {}],
    ['no Skyhook has runtimeRequired', { views: [viewOf({})] }],
    ['the taint has another value', { taints: [{ ...taint, value: 'yes' }] }],
  ])('the condition is written if %s', (_, of) => {
    expect(written(of)).toBe(desired.replace('runtime-required:', `${of.taints?.[0]?.value ?? 'runtime-required'}:`))
  })

  test.each<[string, Case]>([
    ['the node has no taint', { taints: [] }],
    ['the taint has another effect', { taints: [{ ...taint, effect: 'NoExecute' }] }],
    ['a Skyhook with runtimeRequired selects the node', { views: [viewOf(required), viewOf(elsewhere, 't')] }],
    ['the Skyhooks are not known', { change: { skyhooks: unknown('not listed') } }],
    ['edits of the Skyhooks may be missed', { change: { areSkyhooksInDoubt: true } }],
    ['the last Skyhook that required it is gone, and the taint with it', { journal: { runtimeRequired: true } }],
    ['the Node shows it', { shown: desired }],
  ])('nothing is written if %s', (_, of) => {
    const { patch, recheckAtMs } = taintCondition(snapshotOf(of), false)
    expect([patch.conditions, patch.removedConditions, recheckAtMs]).toEqual([[], [], Infinity])
  })

  test.each<[string, readonly string[], string]>([
    ['is named', ['gpu'], '(gpu selects other nodes)'],
    ['and two others are named in their order', ['net', 'gpu', 'fs'], '(fs, gpu, net select other nodes)'],
    ['and others are counted from the fourth on', ['e', 'd', 'c', 'b', 'a'], '(a, b, c and 2 more select other nodes)'],
  ])('a Skyhook with runtimeRequired for other nodes %s', (_, names, part) => {
    expect(written({ views: names.map((name) => viewOf(elsewhere, name)) })).toContain(`selects the node ${part}, so`)
  })

  test.each<[string, Case, boolean]>([
    ['at once if the taint is gone', { taints: [] }, false],
    [
      'at once if the taint is gone and the Skyhooks are not known',
      { taints: [], change: { skyhooks: unknown('x') } },
      false,
    ],
    ['with the first write of a Skyhook that selects the node', { views: [viewOf(required)] }, true],
    [
      'at once if such a Skyhook has its status on the Node',
      { views: [viewOf(required)], annotations: { [statusKey('s')]: 'waiting' } },
      false,
    ],
  ])('the condition is removed %s', (_, of, isWriting) => {
    expect(written({ ...of, shown: desired }, isWriting)).toBe('removed')
  })

  test.each<[string, Case]>([
    ['the Skyhooks are not known', { change: { skyhooks: unknown('not listed') } }],
    ['edits of the Skyhooks may be missed', { views: [viewOf(required)], change: { areSkyhooksInDoubt: true } }],
    [
      'a Skyhook that selects the node has written nothing yet',
      { views: [viewOf(required), viewOf({}, 't')], annotations: { [statusKey('t')]: 'complete' } },
    ],
  ])('the condition stays while %s', (_, of) => {
    const { patch, journalFields } = taintCondition(snapshotOf({ ...of, shown: desired }), false)
    expect([patch.conditions, patch.removedConditions]).toEqual([[], []])
    expect('taintUnliftedSinceMs' in journalFields).toBe(of.change !== undefined)
  })

  test('a change of the message is written, and the time of the transition stays', () => {
    const { conditions } = taintCondition(snapshotOf({ shown: 'old' }), false).patch
    expect(conditions).toMatchObject([{ message: desired, lastTransitionTime: '2020-01-01T00:00:00Z' }])
  })

  test('the condition comes ten seconds after the agent has seen the taint first', () => {
    const first = taintCondition(snapshotOf({ change: { journal: idleSnapshot().journal } }), true)
    expect(first).toMatchObject({
      patch: { conditions: [] },
      journalFields: { taintUnliftedSinceMs: nowMs },
      recheckAtMs: nowMs + 10_000,
    })
    const at = (atMs: number) => written({ journal: first.journalFields, change: { nowMs: atMs } })
    expect([at(nowMs + 9_999), at(nowMs + 10_000)]).toEqual([undefined, desired])
  })
})
