import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { PodWatch } from '../model/pods.ts'

/** What one selected Skyhook currently does on this node. */
export type SkyhookPlan = {
  readonly builder: PlanBuilder
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Of each failing package, the worst first. */
  readonly packageReasons?: ReadonlyMap<string, Reason>
  /** The work for this spec is complete; later Skyhooks may start. */
  readonly complete: boolean
  /** The cordon that this Skyhook requests: its mark on the Node, off it, or unchanged, even if the Node lost it. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
  /** Only the reason of the Skyhook on this node is read or written. */
  readonly isUntouched?: boolean
}

export const preparingImages: Reason = { reason: 'Preparing', message: 'fetching the package images' }
