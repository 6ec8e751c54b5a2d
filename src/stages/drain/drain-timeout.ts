import type { Draft } from '../model/plan-builder.ts'
import { wakeAt } from '../model/plan-builder.ts'
import type { DrainReason } from './drain.ts'

/** A node that only waits to be drained gives the slot to others after this, unless spec.drain says otherwise. */
const yieldAfterSeconds = 600
const firstPauseMs = 60_000
const longestPauseMs = 1_800_000

/** The reason for which draining was given up for now, while that lasts. */
export function drainPause({ record, world }: Draft): DrainReason | undefined {
  const { drain } = record
  return drain?.untilMs !== undefined && drain.untilMs > world.nowMs ? drain.reason : undefined
}

/** Notes since when the node waits for its drain; forgets it, with all earlier tries, once it is drained. */
export function noteDrain(draft: Draft, waits: boolean): void {
  const { record, world } = draft
  if (!waits) {
    if (record.drain) {
      const { drain: _, ...rest } = record
      draft.record = rest
    }
    return
  }
  if (record.drain?.sinceMs === undefined) draft.record = { ...record, drain: { yields: record.drain?.yields ?? 0, sinceMs: world.nowMs } }
}

/** Past `timeoutSeconds` of spec.drain. */
export function isOverdue({ record, world, view }: Draft): boolean {
  const { timeoutSeconds } = view.spec.drain ?? {}
  const sinceMs = record.drain?.sinceMs
  return timeoutSeconds !== undefined && sinceMs !== undefined && world.nowMs - sinceMs >= timeoutSeconds * 1000
}

/**
 * True when a drain that nothing on the host depends on has waited long enough: the node goes back to service and tries
 * again after a pause that doubles each time. Wakes the plan when that will be.
 */
export function losesPatience(draft: Draft): boolean {
  const { record, world, view } = draft
  const { yieldAfterSeconds: after = yieldAfterSeconds, timeoutSeconds, onTimeout } = view.spec.drain ?? {}
  const sinceMs = record.drain?.sinceMs
  if (sinceMs === undefined) return false
  const limits = [...(after > 0 ? [after] : []), ...(timeoutSeconds !== undefined && onTimeout === 'release' ? [timeoutSeconds] : [])]
  if (limits.length === 0) return false
  const atMs = sinceMs + Math.min(...limits) * 1000
  if (atMs > world.nowMs) {
    wakeAt(draft, atMs)
    return false
  }
  return true
}

/** Begins the pause; the reason stays readable while it lasts. */
export function pauseDrain(draft: Draft, reason: DrainReason): void {
  const { record, world } = draft
  const yields = (record.drain?.yields ?? 0) + 1
  const untilMs = world.nowMs + Math.min(longestPauseMs, firstPauseMs * 2 ** (yields - 1))
  draft.record = { ...record, drain: { yields, untilMs, reason } }
}
