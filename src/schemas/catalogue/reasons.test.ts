import { expect, test } from 'vitest'
import { reasons, type ReasonName } from './reasons.ts'
import { isReportedOn, statusFor } from './reason.ts'

const names = Object.keys(reasons) as ReasonName[]
const unreportedOn = (object: 'Node' | 'Skyhook'): string[] =>
  names.filter((name) => !isReportedOn(object, name)).sort()

test('ordinary waits are not reported on the Node', () => {
  expect(unreportedOn('Node')).toEqual([
    'Preparing',
    'RebootPending',
    'Soaking',
    'WaitingForBatch',
    'WaitingForOtherSkyhook',
    'WaitingForPriority',
    'WaitingForSlot',
  ])
})

test('the Skyhook leaves out what passes on many nodes and what a person asked for', () => {
  const ownToTheNode = [
    'ApiServerUnavailable',
    'Disabled',
    'Ignored',
    'NodeNotReady',
    'Paused',
    'ProtectedPods',
    'Takeover',
  ]
  expect(unreportedOn('Skyhook')).toEqual([...unreportedOn('Node'), ...ownToTheNode].sort())
})

test('a reason of a newer agent is reported', () => {
  expect(isReportedOn('Skyhook', 'InventedLater')).toBe(true)
  expect(isReportedOn('Skyhook', 'constructor')).toBe(true)
})

test('every reason has the status that the operator shows', () => {
  const namesWith = (hasSlot: boolean, status: string): string[] =>
    names.filter((name) => statusFor(name, hasSlot) === status).sort()
  const bySlot = [
    'ApiServerUnavailable',
    'DrainBlocked',
    'ImagePull',
    'NodeNotReady',
    'Preparing',
    'ProtectedPods',
    'RebootPending',
    'ReferenceMissing',
    'Soaking',
    'Takeover',
    'WaitingForOtherSkyhook',
  ]
  const waiting = ['WaitingForBatch', 'WaitingForPriority', 'WaitingForSlot']
  expect(namesWith(true, 'in_progress')).toEqual(bySlot)
  expect(namesWith(true, 'waiting')).toEqual(waiting)
  expect(namesWith(false, 'waiting')).toEqual([...bySlot, ...waiting].sort())
  for (const hasSlot of [true, false]) {
    expect(namesWith(hasSlot, 'erroring')).toEqual([
      'CheckFailed',
      'InternalError',
      'InvalidPackage',
      'RebootLoop',
      'RebootRefused',
      'StepFailed',
    ])
    expect(namesWith(hasSlot, 'blocked')).toEqual([
      'ApiRequestRefused',
      'CrashLoop',
      'DeploymentPolicyNotFound',
      'HostUnreachable',
      'HostUnusable',
      'Ignored',
      'InvalidSpec',
      'TaintNotTolerated',
    ])
    expect(namesWith(hasSlot, 'paused')).toEqual(['Paused'])
    expect(namesWith(hasSlot, 'disabled')).toEqual(['Disabled'])
  }
})
