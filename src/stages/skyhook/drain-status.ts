import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { type Disruption, mayPodsBlock, protectedPodsBlocker } from '../drain/drain.ts'
import { drainPause } from '../drain/drain-timeout.ts'
import { type PackageState, reasonOfBlocked } from '../model/package-state.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { DrainReason, PodWatch } from '../model/pods.ts'

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
