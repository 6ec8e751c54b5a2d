/**
 * After the work the node is in service again, and its slot is kept for a while (`spec.pace`): the rollout continues
 * only when this node has proven itself. Nothing starts under such a slot: new work gives it back and requests another
 * one.
 */
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { DaemonSetReference, Soak } from '../../schemas/journal.ts'
import { isPastWork, type SkyhookSpec } from '../../schemas/skyhook.ts'
import { someOf } from '../../schemas/wording.ts'
import { hasCordon } from '../drain/drain.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import { isReadyPod, type Pod } from '../model/pods.ts'
import type { OwnSlot, SkyhookView, Snapshot } from '../model/snapshot.ts'
import { missingSlotReason } from './slot.ts'

/**
 * How long to wait for a DaemonSet without any pod on the node, for the replacement of a deleted pod. After that the
 * DaemonSet was deleted, or no longer selects the node.
 */
const maxAbsentMs = 300_000
const maxNames = 3

const paceOf = ({ pace }: SkyhookSpec): { readonly pauseMs: number; readonly minReadyMs: number } => ({
  pauseMs: (pace?.pauseSeconds ?? 0) * 1000,
  minReadyMs: (pace?.minReadySeconds ?? 0) * 1000,
})

/** The DaemonSets with a Ready pod must be known before the work starts. */
export const needsDaemonSets = ({ spec }: SkyhookView): boolean => paceOf(spec).minReadyMs > 0

/**
 * DaemonSets that currently have a Ready pod on the node; absent where nothing requires them, or the pods are not
 * known.
 */
export function readyDaemonSets(
  { pods }: Snapshot,
  view: SkyhookView,
): { readonly readyDaemonSets?: readonly DaemonSetReference[] } {
  if (!needsDaemonSets(view) || !pods.known) return {}
  const found = pods.value.pods.filter(isReadyPod).flatMap((pod) => daemonSetOf(pod) ?? [])
  return { readyDaemonSets: [...new Map(found.map((reference) => [reference.uid, reference])).values()] }
}

/** Nothing new may start under the slot: its work is complete. */
export const isSpent = ({ record }: PlanBuilder, slot: OwnSlot | undefined): boolean =>
  slot !== undefined && record.lifecycle === undefined && (record.soak !== undefined || isPastWork(slot.phase))

/** As far as the pace is concerned: started work continues in any case. */
export const mayBeginUnder = (builder: PlanBuilder, slot: OwnSlot | undefined): boolean =>
  builder.record.lifecycle !== undefined ||
  (!isSpent(builder, slot) && (!needsDaemonSets(builder.view) || builder.snapshot.pods.known))

/** The soak of work that has just completed. Joining nodes (bootstrap) have no capacity in use. */
export function newSoak({ record, view }: PlanBuilder, slot: OwnSlot | undefined): Soak | undefined {
  if (record.lifecycle === undefined) return record.soak
  const { pauseMs, minReadyMs } = paceOf(view.spec)
  if (slot === undefined || slot.isBootstrap || pauseMs + minReadyMs === 0) return undefined
  return { daemonSets: record.lifecycle.readyDaemonSets ?? [] }
}

/** Work that has ended without its slot takes one again before it is complete: it soaks under it. */
export function lostSlotReason(builder: PlanBuilder, slot: OwnSlot | undefined): Reason | undefined {
  const { pauseMs, minReadyMs } = paceOf(builder.view.spec)
  if (slot !== undefined || builder.record.lifecycle === undefined || pauseMs + minReadyMs === 0) return undefined
  const message = 'the work is done and has lost its slot, which spec.pace keeps for a while: taking one again'
  return missingSlotReason(builder, slot) ?? { reason: 'WaitingForSlot', message }
}

/** A deleted slot ends the soak: that is a way for a person to end it. */
export function endSoakWithoutSlot(builder: PlanBuilder, slot: OwnSlot | undefined): void {
  if (builder.record.soak && builder.snapshot.slots.known && slot === undefined)
    builder.record = { ...builder.record, soak: undefined }
}

export type SoakProgress =
  | { readonly state: 'over' }
  | { readonly state: 'soaking'; readonly reason: Reason | undefined; readonly watchPods: 'no' | 'any' }

/**
 * Counts the times of the soak in the journal and ends it. `isInService`: the Node shows completion and carries no
 * cordon of the Skyhook.
 */
export function advanceSoak(builder: PlanBuilder, isInService: boolean): SoakProgress {
  const { soak } = builder.record
  if (soak === undefined) return { state: 'over' }
  const { nowMs } = builder.snapshot
  const watchPods = needsDaemonSets(builder.view) && soak.daemonSets.length > 0 ? 'any' : 'no'
  const sinceMs = soak.sinceMs ?? (isInService ? nowMs : undefined)
  if (sinceMs === undefined) return { state: 'soaking', reason: undefined, watchPods }

  const { pauseMs, minReadyMs } = paceOf(builder.view.spec)
  const readiness = minReadyMs === 0 ? ({ state: 'ready' } as const) : readinessOf(builder, soak.daemonSets, sinceMs)
  const { readySinceMs: before, ...others } = soak
  const readySinceMs =
    readiness.state === 'ready' ? (before ?? nowMs) : readiness.state === 'unknown' ? before : undefined
  const isReadyKnown = readiness.state === 'ready' && readySinceMs !== undefined
  const endMs = Math.max(sinceMs + pauseMs, isReadyKnown ? readySinceMs + minReadyMs : Infinity)
  if (endMs <= nowMs) {
    builder.record = { ...builder.record, soak: undefined }
    return { state: 'over' }
  }
  builder.record = {
    ...builder.record,
    soak: { ...others, sinceMs, ...(readySinceMs !== undefined && { readySinceMs }) },
  }
  requeueAt(builder, endMs)
  const message =
    readiness.state === 'ready' ? messageOf(builder.view.spec) : `waiting for ${readiness.missing} to be Ready`
  return { state: 'soaking', reason: { reason: 'Soaking', message }, watchPods }
}

/** Without counters: each change of it would be a write of the Node. */
function messageOf(spec: SkyhookSpec): string {
  const { pauseMs, minReadyMs } = paceOf(spec)
  const waits = [
    ...(pauseMs > 0 ? [`for ${pauseMs / 1000} s`] : []),
    ...(minReadyMs > 0 ? [`until the node has been Ready for ${minReadyMs / 1000} s`] : []),
  ]
  return `the work is complete, the slot is kept ${waits.join(' and ')}`
}

type Readiness =
  | { readonly state: 'ready' }
  | { readonly state: 'not-ready'; readonly missing: string }
  /** The earlier state still counts. */
  | { readonly state: 'unknown'; readonly missing: string }

function readinessOf(builder: PlanBuilder, daemonSets: readonly DaemonSetReference[], sinceMs: number): Readiness {
  const { snapshot } = builder
  if (!isReadyFromThisBoot(snapshot)) return { state: 'not-ready', missing: 'the node' }
  if (daemonSets.length === 0) return { state: 'ready' }
  const { pods } = snapshot
  if (!pods.known) return { state: 'unknown', missing: 'pods of DaemonSets' }
  const podsOf = Map.groupBy(pods.value.pods, (pod) => daemonSetOf(pod)?.uid)
  const absentUntilMs = sinceMs + maxAbsentMs
  const isMissing = ({ uid }: DaemonSetReference): boolean => {
    const found = podsOf.get(uid)
    return found === undefined ? snapshot.nowMs < absentUntilMs : !found.some(isReadyPod)
  }
  const missing = daemonSets.filter(isMissing).map(({ namespace, name }) => `${namespace}/${name}`)
  if (missing.length === 0) return { state: 'ready' }
  if (snapshot.nowMs < absentUntilMs) requeueAt(builder, absentUntilMs)
  return { state: 'not-ready', missing: `the pods of DaemonSets ${someOf(missing, maxNames)}` }
}

function daemonSetOf({ metadata }: Pod): DaemonSetReference | undefined {
  const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'DaemonSet' && controller === true)
  return owner && { uid: owner.uid, namespace: metadata.namespace, name: owner.name }
}

/** A restarted kubelet or container runtime reports Ready too early; Ready must hold for this long. */
const minReadyMs = 10_000

/**
 * Why a node may not go back to service after an interrupt: it must report Ready, from this boot. This applies until
 * the Node shows it back in service: the patch that removes our cordon may be late, and the node may fail meanwhile.
 */
export function notReadyReason(builder: PlanBuilder): Reason | undefined {
  const { lifecycle } = builder.record
  const isReturning = lifecycle === undefined && hasCordon(builder.snapshot, builder.view.metadata.name)
  if (lifecycle?.interruptedAtMs === undefined && !isReturning) return undefined
  if (!isReadyFromThisBoot(builder.snapshot))
    return { reason: 'NodeNotReady', message: 'the node has not reported Ready since its interrupt' }
  if (!lifecycle?.restartedRuntime || lifecycle.interruptedAtMs === undefined) return undefined
  const readyAtMs = lifecycle.interruptedAtMs + minReadyMs
  if (builder.snapshot.nowMs >= readyAtMs) return undefined
  requeueAt(builder, readyAtMs)
  return {
    reason: 'NodeNotReady',
    message: 'the kubelet or the container runtime restarted: waiting for 10 s of Ready',
  }
}

function isReadyFromThisBoot(snapshot: Snapshot): boolean {
  const ready = snapshot.node.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && snapshot.node.status?.nodeInfo?.bootID === snapshot.bootId
}
