import type { Draft } from '../model/plan-builder.ts'
import { wakeAt } from '../model/plan-builder.ts'
import { cordonState } from '../drain/drain.ts'
import type { Reason } from '../model/reasons.ts'
import type { World } from '../model/snapshot.ts'

/** A kubelet or a container runtime that was restarted says Ready before it is; this long it has to go on saying so. */
const readyHoldsMs = 10_000

/**
 * Why a node may not go back to service after an interrupt: it has to report Ready, and from this boot. That holds until the
 * Node shows it back in service: the patch that takes our cordon away may be late, and the node lost meanwhile.
 */
export function whyNotReady(draft: Draft): Reason | undefined {
  const { lifecycle } = draft.record
  const isReturning = lifecycle === undefined && cordonState(draft.world.node).marks.has(draft.view.metadata.name)
  if (lifecycle?.interruptedAtMs === undefined && !isReturning) return undefined
  if (!isReadyFromThisBoot(draft.world)) return { reason: 'NodeNotReady', message: 'the node has not reported Ready since its interrupt' }
  if (!lifecycle?.restartedRuntime || lifecycle.interruptedAtMs === undefined) return undefined
  const heldAtMs = lifecycle.interruptedAtMs + readyHoldsMs
  if (draft.world.nowMs >= heldAtMs) return undefined
  wakeAt(draft, heldAtMs)
  return { reason: 'NodeNotReady', message: 'the kubelet or the container runtime was restarted: Ready has to hold for 10 s' }
}

function isReadyFromThisBoot(world: World): boolean {
  const ready = world.node.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && world.node.status?.nodeInfo?.bootID === world.bootId
}
