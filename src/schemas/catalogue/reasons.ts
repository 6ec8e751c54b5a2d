import type { NodeStatus } from '../skyhook.ts'

/**
 * Why a node is not complete for a Skyhook: published on the Node, in Events and by the CLI. Never a counter in the
 * message.
 */
export const reasonNames = [
  'WaitingForSlot',
  'WaitingForPriority',
  'WaitingForBatch',
  'ProtectedPods',
  'DrainBlocked',
  'Preparing',
  'ImagePull',
  'ReferenceMissing',
  'StepFailed',
  'CheckFailed',
  'TaintNotTolerated',
  'Paused',
  'Disabled',
  'Ignored',
  'InvalidSpec',
  'InvalidPackage',
  'NodeNotReady',
  'RebootRefused',
  'RebootPending',
  'RebootLoop',
  'HostUnusable',
  'HostUnreachable',
  'RuntimeRequired',
  'Takeover',
  'Soaking',
  'DeploymentPolicyNotFound',
] as const

export type ReasonName = (typeof reasonNames)[number]
/**
 * A reason that has stood unchanged for so long is told in the log and as an Event; shorter ones only stand on the
 * Node.
 */
export const reasonReportDelayMs = 2_000

export type Reason = { readonly reason: ReasonName; readonly message: string }

/** The operator's node status that goes with a reason; `hasSlot` tells work under way from waiting for it. */
export function statusFor(reason: ReasonName, hasSlot: boolean): NodeStatus {
  switch (reason) {
    case 'StepFailed':
    case 'CheckFailed':
    case 'InvalidPackage':
    case 'RebootLoop':
    case 'RebootRefused':
      return 'erroring'
    case 'TaintNotTolerated':
    case 'Ignored':
    case 'HostUnusable':
    case 'HostUnreachable':
    case 'InvalidSpec':
    case 'DeploymentPolicyNotFound':
      return 'blocked'
    case 'Paused':
      return 'paused'
    case 'Disabled':
      return 'disabled'
    case 'WaitingForSlot':
    case 'WaitingForPriority':
    case 'WaitingForBatch':
    case 'RuntimeRequired':
      return 'waiting'
    case 'Preparing':
    case 'ImagePull':
    case 'ReferenceMissing':
    case 'ProtectedPods':
    case 'DrainBlocked':
    case 'RebootPending':
    case 'NodeNotReady':
    case 'Takeover':
    case 'Soaking':
      return hasSlot ? 'in_progress' : 'waiting'
  }
}
