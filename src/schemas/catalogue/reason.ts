/** A reason of a node for a Skyhook, and what its row of the catalogue decides. */
import type { NodeStatus } from '../skyhook.ts'
import type { ReasonCode } from './reason-codes.ts'
import { type ReasonName, type ReasonRow, reasons } from './reasons.ts'

export type Reason = {
  readonly reason: ReasonName
  readonly message: string
  /** Details, where they are known. */
  readonly code?: ReasonCode
  /** Key of the package concerned, as in nodeState. */
  readonly package?: string
  /** For a retry: when the first attempt failed, in ms of steady time. The text may be newer. */
  readonly failingSinceMs?: number
  /** Of a stage or an interrupt: failed attempts in a row, and when the next one may start. */
  readonly attempts?: { readonly count: number; readonly retryAtMs: number }
}

/** A reason that lasts this long is reported in the log and as an Event; shorter ones appear on the Node only. */
export const reasonReportDelayMs = 2_000

/** The operator's node status that goes with a reason. */
export function statusFor(reason: ReasonName, hasSlot: boolean): NodeStatus {
  const { status } = reasons[reason]
  return status === 'by-slot' ? (hasSlot ? 'in_progress' : 'waiting') : status
}

/** True for failures that the agent retries; not for reasons of a newer agent. */
export const isFailure = (reason: string): boolean =>
  Object.hasOwn(reasons, reason) && reasons[reason as ReasonName].section === 'failing'

/** True when a reason on a Node becomes a Warning on the object. Unknown ones, of a newer agent, do. */
export function isReportedOn(object: 'Node' | 'Skyhook', reason: string): boolean {
  const row: ReasonRow | undefined = Object.hasOwn(reasons, reason) ? reasons[reason as ReasonName] : undefined
  return row?.eventOn.includes(object) ?? true
}
