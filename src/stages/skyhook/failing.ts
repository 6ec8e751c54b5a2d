/** The failures of one Skyhook, and their reasons on the Node. */
import { type Reason, statusFor } from '../../schemas/catalogue/reasons.ts'
import { openStepsOf, type SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { type Failing, isWait, worstOf } from '../model/failures.ts'
import { reasonMessage } from '../model/reason-message.ts'
import { type Action, failureKey, isPlannedOnce, type TimedReason } from '../model/plan.ts'
import type { Failure, Snapshot } from '../model/snapshot.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'
import { ownSlot } from './slot.ts'

type Concern = {
  readonly skyhook: string
  readonly actions: readonly Action[]
  /** Failures of the whole node do not matter to a Skyhook without remaining work. */
  readonly isComplete: boolean
}

/** Failures of actions that it requests now or requested before, and failures outside of plans. */
export function failingFor(snapshot: Snapshot, { skyhook, actions, isComplete }: Concern): Failing {
  if (snapshot.failures.size === 0) return { failure: undefined, recheckAtMs: Infinity }
  const requested = new Set(actions.map(failureKey))
  return worstOf(snapshot, (key, failure) =>
    failure.action === undefined || isPlannedOnce(failure.action)
      ? failure.skyhook === skyhook || (failure.skyhook === undefined && !isComplete)
      : requested.has(key),
  )
}

/** A failure replaces a wait; other reasons why the node is not complete come first. */
export function withFailure(
  snapshot: Snapshot,
  { builder, status, reason, packageReasons = new Map() }: SkyhookPlan,
  { failure }: Failing,
  last: TimedReason | undefined,
): { readonly status: NodeStatus; readonly reason?: TimedReason | undefined } {
  const { nowMs } = snapshot
  const packages = [...packageReasons].map(
    ([name, each]) => [name, withSince(each, last?.packages?.get(name), nowMs)] as const,
  )
  const withPackages = (timedReason: TimedReason): TimedReason =>
    packages.length === 0 ? timedReason : { ...timedReason, packages: new Map(packages) }
  if (!failure || !(reason === undefined || isWait(reason)))
    return { status, reason: reason && withPackages(withSince(reason, last, nowMs)) }
  const isUnfinished = status === 'in_progress' || status === 'waiting'
  const hasSlot = ownSlot(snapshot, builder.view) !== undefined
  const isHeldUp = isUnfinished && holdsWorkUp(snapshot, builder.record, failure)
  return {
    status: isHeldUp ? statusFor(failure.reason, hasSlot) : status,
    reason: withPackages({ ...timed(failure), firstSinceMs: last?.firstSinceMs ?? failure.sinceMs }),
  }
}

/** Nothing of the Skyhook runs on the host while the action fails. */
const holdsWorkUp = (snapshot: Snapshot, record: SkyhookRecord, { action }: Failure): boolean =>
  action !== undefined &&
  action !== 'renewSlot' &&
  !isPlannedOnce(action) &&
  openStepsOf(record).every(({ id }) => snapshot.attempts.get(id)?.state !== 'running')

export const timed = ({ reason, message, sinceMs }: Failure): TimedReason => ({
  reason,
  message: reasonMessage(message),
  sinceMs,
})

function withSince(reason: Reason, last: TimedReason | undefined, nowMs: number): TimedReason {
  const message = reasonMessage(reason.message)
  const isUnchanged = last?.reason === reason.reason && last.message === message
  return {
    ...reason,
    message,
    sinceMs: isUnchanged ? last.sinceMs : nowMs,
    firstSinceMs: last?.firstSinceMs ?? last?.sinceMs ?? nowMs,
  }
}
