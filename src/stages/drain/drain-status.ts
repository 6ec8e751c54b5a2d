import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import { type PackageState, reasonOfBlocked } from '../model/package-state.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { DrainReason, PodWatch } from '../model/pods.ts'
import { type Disruption, mayPodsBlock, protectedPodsBlocker } from './drain.ts'

/** The drain of the node, for work that has started. */
export type DrainStatus =
  /** Nothing requires it, and the node has no mark of ours. */
  | { readonly drain: 'none' }
  /** Nothing requires it any longer; the mark stays until the work is complete. */
  | { readonly drain: 'marked' }
  | { readonly drain: 'blocked'; readonly reason: DrainReason | undefined }
  /** It starts when the gate and the slots allow it. */
  | { readonly drain: 'waiting' }
  | { readonly drain: 'draining'; readonly reason: DrainReason | undefined }
  | { readonly drain: 'drained' }

export function drainStatusOf(
  builder: PlanBuilder,
  states: readonly PackageState[],
  { isMarked, isDrained, reason }: Disruption,
  mayStart: boolean,
): DrainStatus {
  // a pending interrupt does not wait for the image of another package
  const isDue = isDrainRequested(states) || states.some(({ state }) => state === 'interrupt')
  if (!isDue) return { drain: isMarked ? 'marked' : 'none' }
  const blocker = drainBlocker(builder)
  const knownBlocker = blocker === 'unknown' ? undefined : blocker
  if (isMarked && isDrained) return { drain: 'drained' }
  if (isMarked) return { drain: 'draining', reason: reason ?? knownBlocker }
  if (blocker !== undefined) return { drain: 'blocked', reason: knownBlocker }
  return mayStart ? { drain: 'draining', reason } : { drain: 'waiting' }
}

/** The consequence for the Node: whether it gets our mark, and which of its pods must be watched. */
export function cordonOf(
  { view }: PlanBuilder,
  { drain }: DrainStatus,
  { watchPods }: Disruption,
): { cordon: 'on' | 'as-is'; watchPods: PodWatch } {
  switch (drain) {
    case 'none':
      return { cordon: 'as-is', watchPods: 'no' }
    case 'waiting': // without its pods the drain would be blocked, and its slot would be given back
      return { cordon: 'as-is', watchPods: mayPodsBlock(view.spec) ? 'any' : 'no' }
    case 'blocked':
      return { cordon: 'as-is', watchPods: 'any' }
    case 'draining': // until the cordon is visible: without its pods the drain would be blocked again
      return { cordon: 'on', watchPods: watchPods === 'no' && mayPodsBlock(view.spec) ? 'any' : watchPods }
    case 'marked':
    case 'drained':
      return { cordon: 'on', watchPods }
  }
}

/**
 * What keeps the node from being taken out of service: an earlier drain that lasted too long, or protected pods under
 * `cordon: late`.
 */
export function drainBlocker(builder: PlanBuilder): DrainReason | 'unknown' | undefined {
  const late = protectedPodsBlocker(builder.snapshot, builder.view.spec)
  return drainPause(builder)?.reason ?? (late === 'none' ? undefined : late)
}

/** Some package waits for the drain, and no other one still waits for its image. */
export const isDrainRequested = (states: readonly PackageState[]): boolean =>
  states.some(({ state }) => state === 'drain' || state === 'interrupt') &&
  !states.some(({ state }) => state === 'preparing')

/** Why packages cannot continue. A failure on the host is worse than something that is missing for the host. */
export function blockedReason(states: readonly PackageState[]): Reason | undefined {
  const blocked = states.filter((state) => state.state === 'blocked')
  const worst = blocked.find(({ atPreparation }) => !atPreparation) ?? blocked[0]
  return worst && reasonOfBlocked(worst)
}

/** The same for each package, the worst first; `names` belong to the states. */
export function packageReasons(
  names: readonly string[],
  states: readonly PackageState[],
  reason: Reason | undefined,
): ReadonlyMap<string, Reason> {
  const rows = states.flatMap((state, index): { name: string; rank: number; reason: Reason }[] => {
    const name = names[index] ?? ''
    if (state.state === 'blocked') return [{ name, rank: state.atPreparation ? 1 : 0, reason: reasonOfBlocked(state) }]
    return state.state === 'interrupt' && reason?.reason === 'RebootLoop' ? [{ name, rank: 0, reason }] : []
  })
  return new Map(rows.toSorted((a, b) => a.rank - b.rank).map((row) => [row.name, row.reason]))
}

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
