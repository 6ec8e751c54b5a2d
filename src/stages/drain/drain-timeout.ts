import type { SkyhookRecord } from '../../schemas/journal.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { DrainReason } from '../model/pods.ts'

/** A node that only waits for its drain gives the slot to others after this, unless spec.drain sets another time. */
const yieldAfterSeconds = 600
const initialPauseMs = 60_000
export const maxDrainPauseMs = 1_800_000

type DrainPause = { readonly reason: DrainReason; readonly untilMs: number }

/** The drain is paused. Undefined once the pause is over: the record keeps it for the length of the next pause. */
export function drainPause({ record, snapshot }: PlanBuilder): DrainPause | undefined {
  const { drain } = record
  return drain?.state === 'paused' && drain.untilMs > snapshot.nowMs ? drain : undefined
}

/** Records since when the node waits for its drain; removes it, with all earlier attempts, once the node is drained. */
export function trackDrain(builder: PlanBuilder, isWaiting: boolean): void {
  const { record, snapshot } = builder
  const { drain } = record
  if (!isWaiting) builder.record = { ...record, drain: undefined }
  else if (drain?.state !== 'waiting') {
    const yieldCount = drain?.yieldCount ?? 0
    builder.record = { ...record, drain: { state: 'waiting', yieldCount, sinceMs: snapshot.nowMs } }
  }
}

const waitingSinceMs = ({ drain }: SkyhookRecord): number | undefined =>
  drain?.state === 'waiting' ? drain.sinceMs : undefined

/** Past `timeoutSeconds` of spec.drain. */
export function isDrainOverdue({ record, snapshot, view }: PlanBuilder): boolean {
  const { timeoutSeconds } = view.spec.drain ?? {}
  const sinceMs = waitingSinceMs(record)
  return timeoutSeconds !== undefined && sinceMs !== undefined && snapshot.nowMs - sinceMs >= timeoutSeconds * 1000
}

/**
 * True when a drain that nothing on the host depends on has waited long enough: the node goes back to service and tries
 * again after a pause that doubles each time. Requeues the plan for that time.
 */
export function drainTimedOut(builder: PlanBuilder): boolean {
  const { record, snapshot, view } = builder
  const { yieldAfterSeconds: yieldAfter = yieldAfterSeconds, timeoutSeconds, onTimeout } = view.spec.drain ?? {}
  const sinceMs = waitingSinceMs(record)
  if (sinceMs === undefined) return false
  const limits = [
    ...(yieldAfter > 0 ? [yieldAfter] : []),
    ...(timeoutSeconds !== undefined && onTimeout === 'release' ? [timeoutSeconds] : []),
  ]
  if (limits.length === 0) return false
  const atMs = sinceMs + Math.min(...limits) * 1000
  if (atMs > snapshot.nowMs) {
    requeueAt(builder, atMs)
    return false
  }
  return true
}

/** Starts the pause; the reason stays readable while it lasts. */
export function pauseDrain(builder: PlanBuilder, reason: DrainReason): void {
  const { record, snapshot } = builder
  const yieldCount = (record.drain?.yieldCount ?? 0) + 1
  const untilMs = snapshot.nowMs + Math.min(maxDrainPauseMs, initialPauseMs * 2 ** (yieldCount - 1))
  builder.record = { ...record, drain: { state: 'paused', yieldCount, untilMs, reason } }
}
