import { expect, test } from 'vitest'
import { builderOf, idleSnapshot, viewOf } from '../../../test/kit/objects/plan-builder.ts'
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { newSkyhookRecord, type SkyhookPlan } from '../model/plan-builder.ts'
import { known, type OwnSlot, type SkyhookView } from '../model/snapshot.ts'
import { planSkyhook } from './plan-skyhook.ts'

const spec = { packages: { a: { version: '1.0.0', image: 'r/p' } } }
const { preparations } = builderOf(spec).snapshot
const annotated = (key: string): SkyhookView => {
  const view = viewOf(spec)
  return { ...view, metadata: { ...view.metadata, annotations: { [key]: 'true' } } }
}
const slot: OwnSlot = {
  scope: 'skyhook',
  uid: 'lease-uid',
  isFormer: false,
  skyhook: 's',
  skyhookUid: 's-uid',
  lease: 's.slot-0',
  phase: 'working',
  ownership: 'confirmed',
  admittedUnder: { generation: 1 },
  renewedAtMs: 1_000,
}
const summary = ({ status, reason, cordon, builder }: SkyhookPlan): unknown[] => [
  status,
  reason?.reason,
  cordon,
  builder.actions.map((action) => action.do),
]

test('a Skyhook with prepared packages requests a slot', () => {
  const planned = planSkyhook(idleSnapshot({ preparations }), viewOf(spec), undefined, undefined)
  expect(summary(planned)).toEqual(['waiting', 'WaitingForSlot', 'off', ['acquireSlot']])
})

test('a Skyhook whose DeploymentPolicy does not exist says so and does not request a slot', () => {
  const view = { ...viewOf({ ...spec, deploymentPolicy: 'careful' }), policy: { state: 'missing' } } as const
  const planned = planSkyhook(idleSnapshot({ preparations }), view, undefined, undefined)
  expect(summary(planned)).toEqual(['blocked', 'DeploymentPolicyNotFound', 'off', []])
  expect(planned.reason?.message).toBe('DeploymentPolicy "careful" not found')
})

test('a Skyhook whose DeploymentPolicy nobody may read says so instead of waiting for a slot', () => {
  const policy = {
    state: 'unknown',
    why: 'the DeploymentPolicies cannot be listed: HTTP 403',
    isRefused: true,
  } as const
  const view = { ...viewOf({ ...spec, deploymentPolicy: 'careful' }), policy }
  const planned = planSkyhook(idleSnapshot({ preparations }), view, undefined, undefined)
  expect(summary(planned)).toEqual(['blocked', 'ApiRequestRefused', 'off', []])
  expect(planned.reason?.message).toBe('the DeploymentPolicies cannot be listed: HTTP 403')
})

test('a Skyhook whose DeploymentPolicy is deleted in the middle of its work finishes it', () => {
  const snapshot = idleSnapshot({ preparations, slots: known([slot]) })
  const { builder } = planSkyhook(snapshot, viewOf(spec), undefined, undefined)
  const view = { ...viewOf({ ...spec, deploymentPolicy: 'careful' }), policy: { state: 'missing' } } as const
  const planned = planSkyhook(snapshot, view, builder.record, undefined)
  expect(summary(planned)).toEqual(['in_progress', undefined, 'as-is', ['startStep']])
})

test('a Skyhook with a confirmed slot starts to work', () => {
  const snapshot = idleSnapshot({ preparations, slots: known([slot]) })
  const planned = planSkyhook(snapshot, viewOf(spec), undefined, undefined)
  expect(summary(planned)).toEqual(['in_progress', undefined, 'as-is', ['startStep']])
  expect(planned.builder.record.lifecycle).toEqual({ startedAtMs: 1_000, generation: 1 })
})

test.each([
  ['with a pace waits for another one, under which it soaks', { pauseSeconds: 60 }, 'in_progress', 'WaitingForSlot'],
  ['without a pace is complete', {}, 'complete', undefined],
])('finished work that has lost its slot, %s', (_, pace, status, reason) => {
  const record = { ...newSkyhookRecord('s-uid'), lifecycle: { startedAtMs: 0, generation: 1 } }
  const planned = planSkyhook(idleSnapshot(), viewOf({ pace }), record, undefined)
  const isComplete = status === 'complete'
  const actions = isComplete ? [] : ['createRecoverySlot']
  expect(summary(planned)).toEqual([status, reason, isComplete ? 'off' : 'as-is', actions])
})

test('a Skyhook without packages is complete', () => {
  const planned = planSkyhook(idleSnapshot(), viewOf({}), undefined, undefined)
  expect([planned.complete, ...summary(planned)]).toEqual([true, 'complete', undefined, 'off', []])
})

test.each([
  ['Paused', 'paused', annotated(pauseKey), undefined],
  ['Disabled', 'disabled', annotated(disableKey), undefined],
  ['WaitingForPriority', 'waiting', viewOf(spec), 'first'],
])('a Skyhook that waits for the reason %s is %s and fetches nothing', (reason, status, view, preceding) => {
  const planned = planSkyhook(idleSnapshot(), view, undefined, preceding)
  expect(summary(planned)).toEqual([status, reason, 'off', []])
})
