import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import type { PodWatch } from '../model/pods.ts'

/** What one selected Skyhook does on this node now. */
export type SkyhookPlan = {
  readonly builder: PlanBuilder
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Of each package that has trouble, the worst first. */
  readonly packageReasons?: ReadonlyMap<string, Reason>
  /** Nothing is left to do for this spec; later Skyhooks may begin. */
  readonly complete: boolean
  /** What this Skyhook wants of the cordon: its mark on the Node, off it, or as it is, also where the Node lost it. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
  /** Nothing of the Skyhook on this node is read or written but the reason. */
  readonly isUntouched?: boolean
}

export const preparingImages: Reason = { reason: 'Preparing', message: 'fetching the package images' }
