/**
 * What happens in one run of a simulated fleet, as plain data: generated from a seed, shrunk action by action, printed.
 * Times are virtual milliseconds since the start.
 */
import type { Budget } from '../../../src/schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { Phase } from './phase.ts'

export type Plan = {
  readonly seed: number
  readonly nodes: readonly NodePlan[]
  readonly skyhooks: readonly SkyhookPlan[]
  readonly policies?: readonly PolicyPlan[]
  readonly actions: readonly PlannedAction[]
  /** What the agents are given for Skyhooks that name no budget; absent: no limit. */
  readonly defaultBudget?: Budget
  /** A DaemonSet has a pod on each Node. */
  readonly hasDaemonSet?: boolean
  /** Faults are over as soon as nothing can happen any more, instead of at their usual end. */
  readonly healsEarly?: boolean
}

export type NodePlan = {
  /** Of the host; its Node is called the same until it is registered under a new name. */
  readonly name: string
  readonly isControlPlane: boolean
  readonly pods: readonly PodPlan[]
  /** The host boots for the first time then; absent: it is there from the start. */
  readonly joinsAtMs?: number
  /** Each registration carries the runtime-required taint. */
  readonly isTainted?: boolean
  /** Its first agent is of the version before. */
  readonly startsWithOlderAgent?: boolean
}

export type PodPlan = {
  readonly name: string
  /** Selected by `podNonInterruptLabels`: nothing may interrupt it. It ends by itself. */
  readonly isProtected: boolean
  /** Guarded by the one PodDisruptionBudget. */
  readonly isGuarded: boolean
  /** It stays on a cordoned Node, and is placed there, too. */
  readonly toleratesCordon?: boolean
  /** It tolerates every taint, comes back to a cordoned Node at once, and ends by itself. */
  readonly toleratesAll?: boolean
  /** A Job owns it: it runs to completion. */
  readonly isOfJob?: boolean
  /** From its eviction until its containers have ended. */
  readonly graceMs: number
}

export type PolicyPlan = {
  readonly name: string
  readonly spec: DeploymentPolicySpec
  /** Absent: with the Skyhooks. */
  readonly createdAtMs?: number
}

export type SkyhookPlan = { readonly name: string; readonly spec: SkyhookSpec }

/** A fault or an edit. */
export type PlannedAction = {
  readonly id: number
  /** Not before this. */
  readonly atMs: number
  readonly kind: string
  /**
   * The host that it is about, or the host whose phase it waits for. Absent: the first of the fleet that is in the
   * phase.
   */
  readonly node?: string
  readonly skyhook?: string
  /** It waits until the node is in this phase; if that never happens, nor does the action. */
  readonly during?: Phase
  /** It begins so long after another action has begun instead of at its own time. */
  readonly follows?: { readonly id: number; readonly afterMs: number }
  /** A fault that lasts. */
  readonly forMs?: number
  /** Whatever else its kind needs. */
  readonly detail?: Readonly<Record<string, unknown>>
}
