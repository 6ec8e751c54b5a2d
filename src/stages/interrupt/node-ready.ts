import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import { hasCordon } from '../drain/drain.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { Snapshot } from '../model/snapshot.ts'

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

export function isReadyFromThisBoot(snapshot: Snapshot): boolean {
  const ready = snapshot.node.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && snapshot.node.status?.nodeInfo?.bootID === snapshot.bootId
}
