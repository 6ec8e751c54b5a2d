/**
 * The status with which a node counts for a Skyhook: in the Skyhook's status, which the census writes, and in the tool.
 * Pure.
 */
import type { NodeStatus } from '../../schemas/skyhook.ts'
import type { SkyhookView } from '../model/snapshot.ts'
import { isDisabled, isPaused } from './gates.ts'

/** The node's agent by its pods. `unready`: no Ready pod, but not for long; `unknown`: the pods cannot be listed. */
export type AgentState = 'ready' | 'unready' | 'silent' | 'unknown'

/** Longer than the replacement of an agent takes, including an image pull over a slow link. */
export const silentAfterMs = 10 * 60_000

/** The status of a node that has not started: it waits, or is held up with the Skyhook. */
export function idleStatus(view: Pick<SkyhookView, 'metadata' | 'policy'>): NodeStatus {
  if (isPaused(view)) return 'paused'
  if (isDisabled(view)) return 'disabled'
  return view.policy !== undefined && view.policy.state !== 'found' ? 'blocked' : 'waiting'
}

export type Reported = {
  /** The published status; `unreadable` for anything else. */
  readonly status: NodeStatus | 'unreadable' | undefined
  /** Its completion belongs to the current spec, this Node object and the published state. */
  readonly isCurrent: boolean
}

/** The node of a silent agent is unknown, regardless of its last report. */
export function countedStatus({ status, isCurrent }: Reported, agent: AgentState, idle: NodeStatus): NodeStatus {
  if (agent === 'silent') return 'unknown'
  if (status === undefined) return agent === 'ready' ? idle : 'unknown'
  if (status === 'unreadable') return 'unknown'
  if (status !== 'complete') return status
  return isCurrent ? 'complete' : idle
}
